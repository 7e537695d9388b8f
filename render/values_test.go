package render

import (
	"math"
	"strings"
	"testing"
)

func TestTextOfValues(t *testing.T) {
	js, csv, tab := asJSON, asCSV, asTable
	str := func(s style, text string) string { return string(s.appendString(nil, []byte(text))) }
	for _, c := range []struct{ name, got, want string }{
		{"json", str(js, "a\"\\\n\r\t\x00\x7fü€\U00010348"), `"a\"\\\n\r\t\u0000\u007fü€` + "\U00010348\""},
		{"json, no UTF-8", str(js, "a\xffb\xc3"), "\"a\ufffdb\ufffd\""},
		{"json, long", str(js, strings.Repeat("x", 30)+"\""), `"` + strings.Repeat("x", 30) + `\""`},
		{"json, none", str(js, ""), `""`},
		{"csv", str(csv, "plain text ü"), "plain text ü"},
		{"csv, comma", str(csv, "a,b"), `"a,b"`},
		{"csv, quote and line", str(csv, "a\"b\nc"), "\"a\"\"b\nc\""},
		{"csv, none", str(csv, ""), `""`},
		{"csv, no UTF-8", str(csv, "a\xff"), "a\ufffd"},
		{"table", str(tab, "a\"\n\x1b[1m"), `a"\n\u001b[1m`},
		{"table, none", str(tab, ""), `""`},
		{"bytes", string(js.appendBytes(nil, []byte{0, 255, 1})), `"AP8B"`},
		{"bytes, none", string(csv.appendBytes(nil, nil)), `""`},
		{"uuid", string(js.appendUUID(nil, []byte("\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"))), `"01234567-89ab-cdef-0123-456789abcdef"`},
		{"int", string(appendInt(nil, math.MinInt64)), "-9223372036854775808"},
		{"uint", string(appendUint(nil, math.MaxUint64)), "18446744073709551615"},
		{"interval", string(js.appendInterval(nil, 14, 3, 4005)), `"P14M3DT4.005S"`},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestTextOfFloats(t *testing.T) {
	for _, c := range []struct {
		f    float64
		bits int
		want string
	}{
		{0, 64, "0.0"},
		{math.Copysign(0, -1), 64, "-0.0"},
		{1, 64, "1.0"},
		{-2.5, 64, "-2.5"},
		{0.1, 64, "0.1"},
		{float64(float32(0.1)), 32, "0.1"},
		{1e15, 64, "1000000000000000.0"},
		{1e16, 64, "1e+16"},
		{1e-7, 64, "1e-07"},
		{math.MaxFloat64, 64, "1.7976931348623157e+308"},
		{5e-324, 64, "5e-324"},
		{16777216, 32, "16777216.0"},
		{math.NaN(), 64, `"NaN"`},
		{math.Inf(1), 32, `"Infinity"`},
		{math.Inf(-1), 64, `"-Infinity"`},
		{halfFloat(0x3c01), 32, "1.0009766"},
		{halfFloat(0x0001), 32, "5.9604645e-08"},
		{halfFloat(0xfc00), 32, `"-Infinity"`},
		{halfFloat(0x7e00), 32, `"NaN"`},
		{halfFloat(0x8000), 32, "-0.0"},
	} {
		if got := string(asJSON.appendFloat(nil, c.f, c.bits)); got != c.want {
			t.Errorf("%v of %d bits: got %s, want %s", c.f, c.bits, got, c.want)
		}
	}
	if got := string(asCSV.appendFloat(nil, math.NaN(), 64)); got != "NaN" {
		t.Errorf("csv: got %s", got)
	}
}

func TestTextOfDecimals(t *testing.T) {
	for _, c := range []struct {
		unscaled int64
		scale    int
		want     string
	}{
		{0, 0, "0"},
		{0, 2, "0.00"},
		{5, 2, "0.05"},
		{-5, 2, "-0.05"},
		{-12345, 2, "-123.45"},
		{math.MinInt64, 18, "-9.223372036854775808"},
		{math.MinInt64, 0, "-9223372036854775808"},
		{7, 25, "0.0000000000000000000000007"},
		{12, -3, "12000"},
		{0, -3, "0"},
	} {
		if got := string(appendDecimal(nil, c.unscaled, c.scale)); got != c.want {
			t.Errorf("%d, scale %d: got %s, want %s", c.unscaled, c.scale, got, c.want)
		}
	}
	for _, c := range []struct {
		unscaled string
		scale    int
		want     string
	}{
		{"", 2, "0.00"},
		{"\x00\x00\x00\x05", 2, "0.05"},
		{"\xff\xff\xff\xfb", 2, "-0.05"},
		{"\xff", 0, "-1"},
		{"\x00\xff", 0, "255"},
		{"\x01\x00\x00\x00\x00\x00\x00\x00\x00", 0, "18446744073709551616"},
		{"\x80\x00\x00\x00\x00\x00\x00\x00\x00", 3, "-2361183241434822606.848"},
		{"\x01\x00\x00\x00\x00\x00\x00\x00\x00", 22, "0.0018446744073709551616"},
		{"\x01\x00\x00\x00\x00\x00\x00\x00\x00", -2, "1844674407370955161600"},
	} {
		if got := string(appendDecimalBytes(nil, []byte(c.unscaled), c.scale)); got != c.want {
			t.Errorf("% x, scale %d: got %s, want %s", c.unscaled, c.scale, got, c.want)
		}
	}
}

func TestTextOfTimes(t *testing.T) {
	for _, c := range []struct{ name, got, want string }{
		{"epoch", string(asJSON.appendDate(nil, 0)), `"1970-01-01"`},
		{"leap day", string(asCSV.appendDate(nil, 11016)), "2000-02-29"},
		{"before 1970", string(asCSV.appendDate(nil, -1)), "1969-12-31"},
		{"year 1", string(asCSV.appendDate(nil, -719162)), "0001-01-01"},
		{"year 0", string(asCSV.appendDate(nil, -719163)), "0000-12-31"},
		{"before it", string(asCSV.appendDate(nil, -719529)), "-0001-12-31"},
		{"year 9999", string(asCSV.appendDate(nil, 2932896)), "9999-12-31"},
		{"year 10000", string(asCSV.appendDate(nil, 2932897)), "+10000-01-01"},
		{"the last day of 32 bits", string(asCSV.appendDate(nil, math.MaxInt32)), "+5881580-07-11"},
		{"the first", string(asCSV.appendDate(nil, math.MinInt32)), "-5877641-06-23"},
		{"time", string(asJSON.appendTimeOfDay(nil, 45296123456, micros, micros)), `"12:34:56.123456"`},
		{"time, millis", string(asCSV.appendTimeOfDay(nil, 1, millis, millis)), "00:00:00.001"},
		{"end of the day", string(asCSV.appendTimeOfDay(nil, 86400000, millis, millis)), "24:00:00.000"},
		{"before the day", string(asCSV.appendTimeOfDay(nil, -500, millis, millis)), "-00:00:00.500"},
		{"before the day, cut", string(asCSV.appendTimeOfDay(nil, -3_661_500_999, micros, millis)), "-01:01:01.500"},
		{"the least time", string(asCSV.appendTimeOfDay(nil, math.MinInt64, nanos, nanos)), "-2562047:47:16.854775808"},
		{"timestamp", string(asJSON.appendTimestamp(nil, 1769862896123456, micros, true)), `"2026-01-31T12:34:56.123456Z"`},
		{"local", string(asCSV.appendTimestamp(nil, 1769862896123, millis, false)), "2026-01-31T12:34:56.123"},
		{"seconds", string(asCSV.appendTimestamp(nil, -1, seconds, true)), "1969-12-31T23:59:59Z"},
		{"before 1970", string(asCSV.appendTimestamp(nil, -1, nanos, false)), "1969-12-31T23:59:59.999999999"},
		{"the first of 64 bits", string(asCSV.appendTimestamp(nil, math.MinInt64, nanos, false)), "1677-09-21T00:12:43.145224192"},
		{"the last", string(asCSV.appendTimestamp(nil, math.MaxInt64, micros, true)), "+294247-01-10T04:00:54.775807Z"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestTextOfKeys(t *testing.T) {
	for _, c := range []struct {
		key       Key
		json, csv string
	}{
		{Key{Type: "int", Value: "007"}, "7", "7"},
		{Key{Type: "BIGINT", Value: "-9223372036854775808"}, "-9223372036854775808", "-9223372036854775808"},
		{Key{Type: "int", Value: "x"}, `"x"`, "x"},
		{Key{Type: "string", Value: "7"}, `"7"`, "7"},
		{Key{Type: "string", Value: "a,b"}, `"a,b"`, `"a,b"`},
		{Key{Type: "string", Value: ""}, `""`, `""`},
		{Key{Type: "string", Null: true}, "", ""},
		{Key{Type: "boolean", Value: "TRUE"}, "true", "true"},
		{Key{Type: "decimal(10,2)", Value: "1.50"}, "1.50", "1.50"},
		{Key{Type: "decimal(10,2)", Value: "1e5"}, `"1e5"`, "1e5"},
		{Key{Type: "double", Value: "2"}, "2.0", "2.0"},
		{Key{Type: "float", Value: "0.1"}, "0.1", "0.1"},
		{Key{Type: "real", Value: "3.4028235e+38"}, "3.4028235e+38", "3.4028235e+38"},
		{Key{Type: "double", Value: "NaN"}, `"NaN"`, "NaN"},
		{Key{Type: "date", Value: "2026-01-31"}, `"2026-01-31"`, "2026-01-31"},
	} {
		if got := string(asJSON.appendKey(nil, &c.key)); got != c.json {
			t.Errorf("%+v: got %s, want %s", c.key, got, c.json)
		}
		if got := string(asCSV.appendKey(nil, &c.key)); got != c.csv {
			t.Errorf("%+v: got %s, want %s", c.key, got, c.csv)
		}
	}
}
