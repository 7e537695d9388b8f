package table

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// leapNow is in a month after a shorter one, in a leap year, and of another day
// in UTC than in its own zone.
func leapNow() time.Time {
	return time.Date(2024, 3, 31, 23, 59, 58, 999, time.FixedZone("", -5*3600)).Add(-5 * time.Hour)
}

// project makes a projection of one key "k" from its parameters.
func project(t *testing.T, typ string, params ...string) *Projection {
	t.Helper()
	p, err := tryProject(typ, params...)
	if err != nil {
		t.Fatalf("%q: %v", params, err)
	}
	return p
}

func tryProject(typ string, params ...string) (*Projection, error) {
	parameters := map[string]string{}
	for _, param := range params {
		name, value, _ := strings.Cut(param, ":")
		if name != templateParameter {
			name = "projection.k." + name
		}
		parameters[name] = value
	}
	return parseProjection([]Column{{Name: "k", Type: typ}}, parameters)
}

// checkValues holds Values and InRange to these values and this count of them.
func checkValues(t *testing.T, p *Projection, now time.Time, limit int, want []string, wantTotal int64) {
	t.Helper()
	values, total := p.Values(0, limit, now)
	if got := slices.Collect(values); !slices.Equal(got, want) || total != wantTotal {
		t.Errorf("got %q of %d, want %q of %d", got, total, want, wantTotal)
	}
	for _, value := range want {
		if !p.InRange(0, value, now) {
			t.Errorf("%q is listed and not in range", value)
		}
	}
}

func checkOutside(t *testing.T, p *Projection, now time.Time, values ...string) {
	t.Helper()
	for _, value := range values {
		if p.InRange(0, value, now) {
			t.Errorf("%q is in range", value)
		}
	}
}

func TestCase50_MinutesSinceTheEpochAnEnumAndAnInjectedKey(t *testing.T) {
	keys := []Column{{Name: "minute", Type: "string"}, {Name: "region", Type: "string"}, {Name: "tenant", Type: "string"}}
	p, err := parseProjection(keys, map[string]string{
		"projection.minute.type":          "date",
		"projection.minute.format":        "yyyy-MM-dd-HH-mm",
		"projection.minute.range":         "1970-01-01-00-00,NOW",
		"projection.minute.interval":      "1",
		"projection.minute.interval.unit": "MINUTES",
		"projection.region.type":          "enum",
		"projection.region.values":        "eu,us",
		"projection.tenant.type":          "injected",
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 1, 30, 0, time.UTC)
	values, total := p.Values(0, 3, now)
	want := []string{"2026-01-01-00-01", "2026-01-01-00-00", "2025-12-31-23-59"}
	if got := slices.Collect(values); !slices.Equal(got, want) || total != now.Unix()/60+1 {
		t.Errorf("minutes: got %q of %d, want %q of %d", got, total, want, now.Unix()/60+1)
	}
	allocs := testing.AllocsPerRun(10, func() {
		some, _ := p.Values(0, 100, now)
		for range some {
			continue
		}
	})
	if allocs > 100*50 {
		t.Errorf("%v allocations for 100 of %d values", allocs, total)
	}
	if !p.InRange(0, "1999-12-31-23-59", now) || p.InRange(0, "2026-01-01-00-02", now) || p.InRange(0, "1969-12-31-23-59", now) {
		t.Error("the range is not from 1970 to now")
	}
	if values, total = p.Values(1, 1, now); !slices.Equal(slices.Collect(values), []string{"eu"}) || total != 2 {
		t.Errorf("enum: %d in all", total)
	}
	if values, total = p.Values(2, 100, now); len(slices.Collect(values)) != 0 || total != -1 {
		t.Errorf("injected: %d in all", total)
	}
	if !p.InRange(2, "any thing/at=all", now) || p.InRange(2, "", now) {
		t.Error("injected takes all but the empty value")
	}
	for _, level := range []int{-1, 3} {
		if values, total = p.Values(level, 9, now); total != 0 || len(slices.Collect(values)) != 0 || p.InRange(level, "x", now) {
			t.Errorf("level %d has values", level)
		}
	}
}

func TestProjectedEnum(t *testing.T) {
	p := project(t, "string", "type: Enum ", "values:eu, us,eu,,ap-south,")
	checkValues(t, p, time.Time{}, 10, []string{"eu", " us", "ap-south"}, 3) // white space is part of a value
	checkValues(t, p, time.Time{}, 2, []string{"eu", " us"}, 3)
	checkValues(t, p, time.Time{}, 0, nil, 3)
	checkValues(t, p, time.Time{}, -1, nil, 3)
	checkOutside(t, p, time.Time{}, "", "us", "EU", "eu,us", "ap")
}

func TestProjectedInteger(t *testing.T) {
	for _, c := range []struct {
		params  []string
		want    []string
		total   int64
		outside []string
	}{
		{[]string{"range:1,3"}, []string{"1", "2", "3"}, 3, []string{"0", "4", "01", "+1", "1.0", " 1", "", "x", "99999999999999999999"}},
		{[]string{"range: 0001 , 9999 "}, []string{"1", "2", "3", "4"}, 9999, []string{"0001"}},
		{[]string{"range:0,23", "digits:2"}, []string{"00", "01", "02", "03"}, 24, []string{"0", "24", "001"}},
		{[]string{"range:8,100", "digits: 2 ", "interval: 46 "}, []string{"08", "54", "100"}, 3, []string{"8", "53", "0100", "146"}},
		{[]string{"range:-3,3", "digits:3", "interval:3"}, []string{"-03", "000", "003"}, 3, []string{"-3", "-0", "0", "-000", "-01"}},
		{[]string{"range:-2,-2"}, []string{"-2"}, 1, []string{"2", "-02"}},
		{
			[]string{"range:9223372036854775805,9223372036854775807", "interval:2"},
			[]string{"9223372036854775805", "9223372036854775807"},
			2,
			[]string{"9223372036854775806", "-9223372036854775807"},
		},
		{
			[]string{"range:-9223372036854775808,9223372036854775807", "interval:9223372036854775807"},
			[]string{"-9223372036854775808", "-1", "9223372036854775806"},
			3,
			[]string{"0", "9223372036854775807"},
		},
		{ // more than are counted
			[]string{"range:-9223372036854775808,9223372036854775807"},
			[]string{"-9223372036854775808", "-9223372036854775807", "-9223372036854775806", "-9223372036854775805"},
			math.MaxInt64,
			[]string{"9223372036854775808"},
		},
	} {
		p := project(t, "int", append(c.params, "type:integer")...)
		checkValues(t, p, time.Time{}, 4, c.want, c.total)
		checkOutside(t, p, time.Time{}, c.outside...)
	}
}

func TestProjectedDate(t *testing.T) {
	for _, c := range []struct {
		params  []string
		want    []string // newest first, at most 4
		total   int64
		outside []string
	}{
		{
			[]string{"format:yyyy-MM-dd", "range:2024-02-27,2024-03-01"},
			[]string{"2024-03-01", "2024-02-29", "2024-02-28", "2024-02-27"},
			4,
			[]string{"2024-02-30", "2024-2-28", "2024-03-02", "2024-02-26", "2024/02/28", "2024-02-28 ", "+2024-02-28", "", "2024-02-28-", "2024-02"},
		},
		{[]string{"format:yyyy/MM/dd", "range:2023/02/27,2023/03/01"}, []string{"2023/03/01", "2023/02/28", "2023/02/27"}, 3, []string{"2023/02/29"}},
		{[]string{"format:yyyyMM", "range:202311,202402"}, []string{"202402", "202401", "202312", "202311"}, 4, []string{"202313", "202300", "20241"}},
		{[]string{"format:yyyy", "range:2020,2022"}, []string{"2022", "2021", "2020"}, 3, []string{"2023", "0000"}},
		{[]string{"format:dd-MM-yyyy", "range:01-01-2010,31-12-2018"}, []string{"31-12-2018", "30-12-2018", "29-12-2018", "28-12-2018"}, 3287, nil},
		{[]string{"format:d.M.yy", "range:9.9.24,11.10.24", "interval:16"}, []string{"11.10.24", "25.9.24", "9.9.24"}, 3, []string{"09.9.24", "25.09.24", "10.9.24"}},
		{[]string{"format:d-MMM-uuuu", "range:31-Jan-2024,1-Feb-2024"}, []string{"1-Feb-2024", "31-Jan-2024"}, 2, []string{"31-jan-2024", "31-January-2024"}},
		{[]string{"format:MMMM yyyy", "range:May 2024,June 2024"}, []string{"June 2024", "May 2024"}, 2, []string{"Jun 2024"}},
		{
			[]string{"format:yyyy-MM-dd'T'HH'h'", "range:2024-12-31T22h,2025-01-01T05h", "interval:3", "interval.unit:hours"},
			[]string{"2025-01-01T04h", "2025-01-01T01h", "2024-12-31T22h"},
			3,
			[]string{"2025-01-01T05h", "2024-12-31T24h", "2025-01-01T07h"},
		},
		{[]string{"format:yyyy'''Q'''", "range:2024'Q',2024'Q'"}, []string{"2024'Q'"}, 1, nil},
		{[]string{"format:yyyy/yyyy-MM", "range:2023/2023-12,2024/2024-01"}, []string{"2024/2024-01", "2023/2023-12"}, 2, []string{"2023/2024-01"}},
		{
			[]string{"format:yyyy-MM-dd HH:mm:ss", "range:2024-01-01 00:00:00,2024-01-01 00:01:00", "interval:20", "interval.unit: SECONDS "},
			[]string{"2024-01-01 00:01:00", "2024-01-01 00:00:40", "2024-01-01 00:00:20", "2024-01-01 00:00:00"},
			4,
			[]string{"2024-01-01 00:00:10", "2024-01-01 00:00:60"},
		},
		{[]string{"format:yyyy-MM-dd", "range:2024-01-01,2024-01-20", "interval.unit:WEEKS"}, []string{"2024-01-15", "2024-01-08", "2024-01-01"}, 3, []string{"2024-01-02"}},
		{ // a day that a month lacks is its last one
			[]string{"format:yyyy-MM-dd", "range:2023-10-31,2024-04-30", "interval.unit:MONTHS"},
			[]string{"2024-04-30", "2024-03-31", "2024-02-29", "2024-01-31"},
			7,
			[]string{"2024-02-28", "2024-03-29", "2024-03-30", "2024-05-31"},
		},
		{[]string{"format:yyyy-MM-dd", "range:2024-01-31,2024-04-29", "interval:1", "interval.unit:MONTHS"}, []string{"2024-03-31", "2024-02-29", "2024-01-31"}, 3, []string{"2024-04-30"}},
		{[]string{"format:yyyy-MM-dd", "range:2020-02-29,2024-02-29", "interval:2", "interval.unit:YEARS"}, []string{"2024-02-29", "2022-02-28", "2020-02-29"}, 3, []string{"2022-02-27"}},
		{ // finer than the format: each text once
			[]string{"format:yyyy-MM", "range:2024-01,2024-03", "interval.unit:DAYS"},
			[]string{"2024-03", "2024-02", "2024-01"},
			3,
			nil,
		},
		{[]string{"format:yyyy-MM-dd", "range:2024-01-01,2024-01-04", "interval:48", "interval.unit:HOURS"}, []string{"2024-01-03", "2024-01-01"}, 2, []string{"2024-01-02"}},
		{[]string{"format:yyyy", "range:2020,2023", "interval:24", "interval.unit:MONTHS"}, []string{"2022", "2020"}, 2, []string{"2021"}},
		{[]string{"format:yyyy-MM-dd", "range:0001-01-01,9999-12-31"}, []string{"9999-12-31", "9999-12-30", "9999-12-29", "9999-12-28"}, 3652059, []string{"0000-12-31", "10000-01-01"}},
		{[]string{"format:yyyy-MM-dd", "range:0001-01-01,9999-12-31", "interval:1000000000", "interval.unit:YEARS"}, []string{"0001-01-01"}, 1, []string{"9999-12-31"}},
		{[]string{"format:yyyy-MM-dd", "range:2024-01-01,2024-01-01"}, []string{"2024-01-01"}, 1, nil},
	} {
		t.Run(strings.Join(c.params, " "), func(t *testing.T) {
			p := project(t, "string", append(c.params, "type:date")...)
			checkValues(t, p, leapNow(), 4, c.want, c.total)
			checkOutside(t, p, leapNow(), c.outside...)
		})
	}
}

func TestProjectedNow(t *testing.T) {
	for _, c := range []struct {
		format, ends, unit string
		newest, oldest     string
		total              int64
	}{
		{"yyyy-MM-dd", "NOW,NOW", "DAYS", "2024-03-31", "2024-03-31", 1},
		{"yyyy-MM-dd", "NOW-1MONTH,NOW", "DAYS", "2024-03-31", "2024-02-29", 32},
		{"yyyy-MM-dd", "NOW-13MONTHS,NOW", "DAYS", "2024-03-31", "2023-02-28", 398},
		{"yyyy-MM-dd", " NOW - 3 YEARS , NOW + 1 DAYS ", "DAYS", "2024-04-01", "2021-03-31", 1098},
		{"yyyy-MM-dd", "NOW-2WEEKS,NOW+2WEEK", "WEEKS", "2024-04-14", "2024-03-17", 5},
		{"yyyy-MM", "NOW-3YEARS,NOW", "MONTHS", "2024-03", "2021-03", 37},
		{"yyyy-MM-dd-HH", "NOW-24HOURS,NOW", "HOURS", "2024-03-31-23", "2024-03-30-23", 25},
		{"yyyy-MM-dd-HH-mm", "NOW-1MINUTE,NOW", "MINUTES", "2024-03-31-23-59", "2024-03-31-23-58", 2},
		{"yyyy-MM-dd-HH-mm-ss", "NOW-1SECOND,NOW+2SECONDS", "SECONDS", "2024-04-01-00-00-00", "2024-03-31-23-59-57", 4},
		{"yyyy-MM-dd", "2024-03-30,now", "DAYS", "2024-03-31", "2024-03-30", 2},
		{"yyyy-MM-dd", "NOW,2024-04-02", "DAYS", "2024-04-02", "2024-03-31", 3},
		{"yyyy", "NOW-1000000000YEARS,NOW+1000000000YEARS", "YEARS", "9999", "0001", 9999},
		{"yy", "NOW-1000000000WEEKS,NOW+1000000000WEEKS", "YEARS", "99", "00", 100},
		{"yyyy-MM-dd", "2024-04-02,NOW", "DAYS", "", "", 0}, // not yet
		{"yyyy-MM-dd", "NOW,2024-03-30", "DAYS", "", "", 0}, // no more
	} {
		p := project(t, "string", "type:date", "format:"+c.format, "range:"+c.ends, "interval:1", "interval.unit:"+c.unit)
		values, total := p.Values(0, 20000, leapNow())
		got := slices.Collect(values)
		if total != c.total || int64(len(got)) != total {
			t.Errorf("%s %s: got %d, %d in all, want %d", c.format, c.ends, len(got), total, c.total)
			continue
		}
		if total > 0 && (got[0] != c.newest || got[total-1] != c.oldest) {
			t.Errorf("%s %s: got %s to %s, want %s to %s", c.format, c.ends, got[total-1], got[0], c.oldest, c.newest)
		}
	}
}

func TestProjectedNowMovesWithEachCall(t *testing.T) {
	p := project(t, "string", "type:date", "format:yyyy-MM-dd", "range:NOW-1DAY,NOW")
	midnight := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	checkValues(t, p, midnight.Add(-time.Nanosecond), 9, []string{"2024-12-31", "2024-12-30"}, 2)
	checkOutside(t, p, midnight.Add(-time.Nanosecond), "2025-01-01")
	checkValues(t, p, midnight, 9, []string{"2025-01-01", "2024-12-31"}, 2)
	checkOutside(t, p, midnight, "2024-12-30")
	for _, now := range []time.Time{{}, time.Unix(math.MaxInt64/2, 0), time.Unix(math.MinInt64/2, 0)} {
		if _, total := p.Values(0, 9, now); total < 1 || total > 2 {
			t.Errorf("at %d s: %d in all", now.Unix(), total)
		}
	}
}

// Steps counted one by one give what is computed.
func TestProjectedDatesAgreeWithSteps(t *testing.T) {
	first := time.Date(2023, 1, 30, 0, 0, 0, 0, time.UTC)
	for _, unit := range []string{"DAYS", "WEEKS", "MONTHS", "YEARS"} {
		for interval := 1; interval <= 13; interval++ {
			for span := 0; span < 800; span += 7 {
				last := first.AddDate(0, 0, span)
				p := project(t, "string", "type:date", "format:yyyy-MM-dd", "interval.unit:"+unit,
					fmt.Sprintf("interval:%d", interval), "range:"+first.Format(time.DateOnly)+","+last.Format(time.DateOnly))
				want := stepwise(first, last, interval, unit)
				slices.Reverse(want)
				checkValues(t, p, first, 1000, want, int64(len(want)))
			}
		}
	}
}

func stepwise(first, last time.Time, interval int, unit string) []string {
	var out []string
	for n := 0; ; n += interval {
		at := first
		switch unit {
		case "DAYS":
			at = first.AddDate(0, 0, n)
		case "WEEKS":
			at = first.AddDate(0, 0, 7*n)
		default:
			wanted := n
			if unit == "YEARS" {
				wanted = 12 * n
			}
			month := time.Date(first.Year(), first.Month()+time.Month(wanted), 1, 0, 0, 0, 0, time.UTC)
			at = month.AddDate(0, 0, first.Day()-1)
			for at.Month() != month.Month() {
				at = at.AddDate(0, 0, -1)
			}
		}
		if at.After(last) {
			return out
		}
		out = append(out, at.Format(time.DateOnly))
	}
}

func TestProjectedLocation(t *testing.T) {
	const template = templateParameter + ":s3://lake/d/${k}"
	for _, c := range []struct {
		typ, format, template string
		value, want           string
	}{
		{"string", "yyyy/MM/dd", template + "/", "2024/03/01", "s3://lake/d/2024/03/01/"},
		{"string", "yyyy/MM/dd", template, "not a date %", "s3://lake/d/not a date %"},
		{"string", "yyyy/MM/dd", templateParameter + ":s3://lake/$d/{k}/${k}/x-${k}$", "v", "s3://lake/$d/{k}/v/x-v$"},
		{"date", "yyyy/MM/dd", template, "2024-03-01", "s3://lake/d/2024/03/01"},
		{"DATE", "yyyyMM", template, "2024-03-01", "s3://lake/d/202403"},
		{"date", "yyyy-MM-dd", template, "2024-03-01", "s3://lake/d/2024-03-01"},
		{"date", "yyyy-MM-dd", template, "x", "s3://lake/d/x"},
	} {
		p := project(t, c.typ, "type:date", "format:"+c.format, "range:NOW,NOW", c.template)
		if got := p.Location([]string{c.value}); got != c.want || !p.Templated() {
			t.Errorf("%s %s: got %q, want %q", c.typ, c.format, got, c.want)
		}
		if got := p.Location(nil); got != "" {
			t.Errorf("without values: %q", got)
		}
	}
	p := project(t, "string", "type:injected")
	if p.Templated() || p.Location([]string{"v"}) != "" {
		t.Errorf("without a template: %q", p.Location([]string{"v"}))
	}
}

// A DATE is written as one below a table with a template; without one the
// directories are as the format has them.
func TestProjectedDateOfTypeDate(t *testing.T) {
	params := []string{"type:date", "format:yyyy/MM", "range:2024/01,2024/03"}
	p := project(t, "date", append(params, templateParameter+":s3://lake/${k}")...)
	checkValues(t, p, leapNow(), 2, []string{"2024-03-01", "2024-02-01"}, 3)
	checkOutside(t, p, leapNow(), "2024/03", "2024-03-02", "2024-04-01", "2023-12-01")
	checkValues(t, project(t, "date", params...), leapNow(), 2, []string{"2024/03", "2024/02"}, 3)
}

func TestProjectionErrorsNameTheParameter(t *testing.T) {
	date := func(params ...string) []string { return append([]string{"type:date"}, params...) }
	day := func(params ...string) []string {
		return append(date("format:yyyy-MM-dd", "range:2024-01-01,NOW"), params...)
	}
	for _, c := range []struct {
		params []string
		want   string
	}{
		{nil, "projection.k.type: missing"},
		{[]string{"type:string"}, "projection.k.type: "},
		{[]string{"type:enum"}, "projection.k.values: "},
		{[]string{"type:enum", "values:,,"}, "projection.k.values: "},
		{[]string{"type:integer"}, "projection.k.range: "},
		{[]string{"type:integer", "range:1"}, "projection.k.range: "},
		{[]string{"type:integer", "range:1-3"}, "projection.k.range: "},
		{[]string{"type:integer", "range:1,2,3"}, "projection.k.range: "},
		{[]string{"type:integer", "range:3,1"}, "projection.k.range: 3 is more than 1"},
		{[]string{"type:integer", "range:1,x"}, "projection.k.range: "},
		{[]string{"type:integer", "range:1," + strings.Repeat("x", 9999)}, "projection.k.range: "},
		{[]string{"type:enum" + strings.Repeat("x", 9999)}, "projection.k.type: "},
		{[]string{"type:integer", "range:1,9223372036854775808"}, "projection.k.range: "},
		{[]string{"type:integer", "range:1,2", "interval:0"}, "projection.k.interval: "},
		{[]string{"type:integer", "range:1,2", "interval:-1"}, "projection.k.interval: "},
		{[]string{"type:integer", "range:1,2", "interval:x"}, "projection.k.interval: "},
		{[]string{"type:integer", "range:1,2", "digits:0"}, "projection.k.digits: "},
		{[]string{"type:integer", "range:1,2", "digits:101"}, "projection.k.digits: "},
		{date("range:2024,2025"), "projection.k.format: missing"},
		{date("format:YYYY-MM-dd", "range:NOW,NOW"), `projection.k.format: "YYYY" is not supported`},
		{date("format:yyyyy", "range:NOW,NOW"), "projection.k.format: "},
		{date("format:yyyy-MM-ddd", "range:NOW,NOW"), `projection.k.format: "ddd" is not supported`},
		{date("format:yyyy-MM-dd hh", "range:NOW,NOW"), `projection.k.format: "hh" is not supported`},
		{date("format:yyyy[-MM]", "range:NOW,NOW"), "projection.k.format: '[' is not supported"},
		{date("format:yyyy'T", "range:NOW,NOW"), "projection.k.format: a quote is not closed"},
		{date("format:MM-dd", "range:NOW,NOW"), "projection.k.format: has no year"},
		{date("format:yyyy-dd", "range:NOW,NOW"), "projection.k.format: has no month"},
		{date("format:yyyy-MM-dd mm", "range:NOW,NOW"), "projection.k.format: has no hour"},
		{date("format:-", "range:NOW,NOW"), "projection.k.format: has no year"},
		{date("format:yyyyMdd", "range:NOW,NOW"), "projection.k.format: a number of one letter"},
		{date("format:yyyy-M1", "range:NOW,NOW"), "projection.k.format: a number of one letter"},
		{date("format:"+strings.Repeat("-", 252)+"yyyy", "range:NOW,NOW"), "projection.k.format: longer than"},
		{date("format:yyyy-MM-dd"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:2024-01-01"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:2024-01-02,2024-01-01"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:2024-01-01, 2024-01-02"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:2023-02-29,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW,NOW-1DAYS"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-1DAYS,NOW-2DAYS"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW+1DAYS,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-3,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW3DAYS,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-DAYS,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-3CENTURIES,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-3MILLISECONDS,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-1000000001DAYS,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOW-99999999999999999999DAYS,NOW"), "projection.k.range: "},
		{date("format:yyyy-MM-dd", "range:NOWISH,NOW"), "projection.k.range: "},
		{day("interval:0"), "projection.k.interval: "},
		{day("interval:1000000001"), "projection.k.interval: "},
		{day("interval.unit:DAY"), "projection.k.interval.unit: "},
		{day("interval.unit:FORTNIGHTS"), "projection.k.interval.unit: "},
		{day("interval:36", "interval.unit:HOURS"), "projection.k.interval: 36 HOURS are no whole DAYS"},
		{date("format:yyyy-MM", "range:NOW,NOW", "interval:30", "interval.unit:DAYS"), "projection.k.interval: "},
		{date("format:yyyy-MM-dd-HH", "range:NOW,NOW", "interval:1"), "projection.k.interval.unit: missing"},
		{day(templateParameter + ":s3://lake/d"), "storage.location.template: lacks ${k}"},
		{day(templateParameter + ":s3://lake/${k}/${other}"), "storage.location.template: ${other} is no partition key"},
		{day(templateParameter + ":s3://lake/${k}/${k"), "storage.location.template: "},
		{day(templateParameter + ":s3://lake/${k}/" + strings.Repeat("x", maxTemplate)), "storage.location.template: longer than"},
	} {
		if p, err := tryProject("string", c.params...); err == nil || !strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 600 {
			t.Errorf("%.200q: got %v, %v, want %q", c.params, p, err, c.want)
		}
	}
}

func TestProjectionOfNoKeys(t *testing.T) {
	p, err := parseProjection(nil, map[string]string{"projection.enabled": "true"})
	if err != nil || p.Templated() || p.Location(nil) != "" {
		t.Errorf("got %+v, %v", p, err)
	}
}

// golden reads the keys and parameters of a table's entry.
func golden(t *testing.T, name string) *Projection {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "projection", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var entry struct {
		Table struct {
			PartitionKeys []Column
			Parameters    map[string]string
		}
	}
	if err = json.Unmarshal(raw, &entry); err != nil {
		t.Fatal(err)
	}
	p, err := parseProjection(entry.Table.PartitionKeys, entry.Table.Parameters)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func TestProjectionOfRealEntries(t *testing.T) {
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		entry string
		level int
		want  string // the first two, and how many in all
	}{
		{"projected", 0, "eu us 3"},
		{"projected", 1, "2026/02/01 2026/01/31 763"},
		{"projected", 2, "00 01 24"},
		{"projected", 3, "-1"},
		{"projected-hive-layout", 0, "2026-02-01 2026-01-31 1097"},
		{"awswrangler-projection", 0, "2020 2021 11"},
		{"awswrangler-projection", 1, "1 2 12"},
	} {
		values, total := golden(t, c.entry).Values(c.level, 2, now)
		if got := strings.Join(append(slices.Collect(values), fmt.Sprint(total)), " "); got != c.want {
			t.Errorf("%s, level %d: got %q, want %q", c.entry, c.level, got, c.want)
		}
	}
	p := golden(t, "projected")
	got, want := p.Location([]string{"eu", "2026/01/31", "07", "a b%"}), "s3://lake/hand/projected/eu/2026/01/31/07/a b%"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if p = golden(t, "projected-hive-layout"); p.InRange(0, "1999-01-01", now) || p.Templated() {
		t.Error("a registered partition out of range is in range")
	}
	if p = golden(t, "awswrangler-projection"); !p.InRange(0, "2024", now) || !p.InRange(1, "7", now) || p.InRange(1, "07", now) {
		t.Error("the writer's own partitions are not in range")
	}
}

func FuzzParseProjection(f *testing.F) {
	f.Add("integer", "0,23", "1", "", "2", "", "s3://b/${k}/${j}/", "07", int64(1767225600))
	f.Add("enum", "", "", "", "", "", "", "b", int64(0))
	f.Add("date", "1970-01-01-00-00,NOW+3YEARS", "1", "MINUTES", "", "yyyy-MM-dd-HH-mm", "", "2024-02-29-00-00", int64(1767225600))
	f.Add("date", "NOW-1000000000WEEKS,NOW", "1000000000", "MILLISECONDS", "", "d'T'MMMyy", "s3://b/${k}${j}", "2024-02-29", int64(math.MinInt64))
	f.Add("date", "0001,9999", "1", "years", "", "y", "", "1", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, kind, ends, interval, unit, digits, format, template, value string, seconds int64) {
		parameters := map[string]string{
			"projection.k.type": kind, "projection.k.values": value + "," + ends, "projection.k.range": ends,
			"projection.k.interval": interval, "projection.k.interval.unit": unit, "projection.k.digits": digits,
			"projection.k.format": format, templateParameter: template, "projection.j.type": "injected",
		}
		p, err := parseProjection([]Column{{Name: "k", Type: "date"}, {Name: "j", Type: "string"}}, parameters)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "projection.") && !strings.HasPrefix(err.Error(), templateParameter) {
				t.Errorf("%v names no parameter", err)
			}
			return
		}
		now := time.Unix(seconds, 0)
		p.InRange(0, value, now)
		if got := p.Location([]string{value, value}); (got != "") != p.Templated() && value != "" {
			t.Errorf("location %q, template %q", got, template)
		}
		values, total := p.Values(0, 100, now)
		seen := map[string]bool{}
		for v := range values {
			if seen[v] || !p.InRange(0, v, now) {
				t.Errorf("%q: seen %v, or not in range", v, seen[v])
			}
			seen[v] = true
			p.Location([]string{v, v})
		}
		if int64(len(seen)) != min(total, 100) && total >= 0 {
			t.Errorf("%d listed of %d", len(seen), total)
		}
	})
}
