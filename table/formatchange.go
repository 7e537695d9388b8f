package table

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// FormatChange is what set-format is asked for (rule 59): the classes that are given;
// "" leaves what there is, or what the table has.
type FormatChange struct {
	InputFormat, OutputFormat, Serde string
	Properties                       map[string]string // of the SerDe; added to those there are
}

// ParseFormatChange reads a format as set-format takes it: one of the six keywords of
// STORED AS (TEXTFILE, SEQUENCEFILE, ORC, PARQUET, AVRO, RCFILE) or JSONFILE, in any
// case, or INPUTFORMAT 'class' OUTPUTFORMAT 'class' [SERDE 'class' [WITH
// SERDEPROPERTIES ('key'='value', …)]]. A keyword gives what Spark makes of it: the
// SerDe too, but for SEQUENCEFILE. Of the classes one is enough, in any order; strings
// are quoted by ' or ", with the escapes of Hive.
func ParseFormatChange(text string) (FormatChange, error) {
	f, err := parseFormatChange(text)
	if err != nil {
		return FormatChange{}, fmt.Errorf("format %.200q: %w", text, err)
	}
	return f, nil
}

const formatForms = "TEXTFILE, SEQUENCEFILE, ORC, PARQUET, AVRO, RCFILE, JSONFILE, or INPUTFORMAT 'class' OUTPUTFORMAT 'class' [SERDE 'class' [WITH SERDEPROPERTIES ('key'='value', …)]]"

func parseFormatChange(text string) (FormatChange, error) {
	tokens, err := formatTokens(text)
	if err != nil {
		return FormatChange{}, err
	}
	if len(tokens) == 1 && !tokens[0].quoted {
		if f, ok := keywordFormat(tokens[0].text); ok {
			return f, nil
		}
	}
	p := formatParser{rest: tokens}
	for len(p.rest) > 0 {
		if err := p.clause(); err != nil {
			return FormatChange{}, err
		}
	}
	if p.f.InputFormat == "" && p.f.OutputFormat == "" && p.f.Serde == "" {
		return FormatChange{}, errors.New("it names no class; known are " + formatForms)
	}
	return p.f, nil
}

// keywordFormat is what a keyword of STORED AS means.
func keywordFormat(keyword string) (f FormatChange, ok bool) {
	const (
		mapred, io  = "org.apache.hadoop.mapred.", "org.apache.hadoop.hive.ql.io."
		textIn      = mapred + "TextInputFormat"
		textOut     = io + "HiveIgnoreKeyTextOutputFormat"
		serdes      = "org.apache.hadoop.hive.serde2."
		sequenceOut = io + "HiveSequenceFileOutputFormat"
	)
	switch strings.ToUpper(keyword) {
	case "TEXTFILE":
		f = FormatChange{InputFormat: textIn, OutputFormat: textOut, Serde: serdes + "lazy.LazySimpleSerDe"}
	case "JSONFILE":
		f = FormatChange{InputFormat: textIn, OutputFormat: textOut, Serde: "org.apache.hive.hcatalog.data.JsonSerDe"}
	case "SEQUENCEFILE":
		f = FormatChange{InputFormat: mapred + "SequenceFileInputFormat", OutputFormat: sequenceOut}
	case "ORC":
		f = FormatChange{InputFormat: io + "orc.OrcInputFormat", OutputFormat: io + "orc.OrcOutputFormat", Serde: io + "orc.OrcSerde"}
	case "PARQUET":
		f = FormatChange{
			InputFormat: io + "parquet.MapredParquetInputFormat", OutputFormat: io + "parquet.MapredParquetOutputFormat",
			Serde: io + "parquet.serde.ParquetHiveSerDe",
		}
	case "AVRO":
		f = FormatChange{
			InputFormat: io + "avro.AvroContainerInputFormat", OutputFormat: io + "avro.AvroContainerOutputFormat",
			Serde: serdes + "avro.AvroSerDe",
		}
	case "RCFILE":
		f = FormatChange{InputFormat: io + "RCFileInputFormat", OutputFormat: io + "RCFileOutputFormat", Serde: serdes + "columnar.LazyBinaryColumnarSerDe"}
	default:
		return f, false
	}
	return f, true
}

// formatToken is a word, a string, or one of ( ) = and the comma.
type formatToken struct {
	text   string
	quoted bool
}

func formatTokens(text string) ([]formatToken, error) {
	var tokens []formatToken
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeftFunc(rest, unicode.IsSpace) {
		switch c := rest[0]; c {
		case '(', ')', '=', ',':
			tokens = append(tokens, formatToken{text: rest[:1]})
			rest = rest[1:]
		case '\'', '"':
			s, n, ok := unquoteHive(rest)
			if !ok {
				return nil, fmt.Errorf("the string %.100s does not end", rest)
			}
			tokens = append(tokens, formatToken{text: s, quoted: true})
			rest = rest[n:]
		default:
			n := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`()=,'"`, r) })
			if n < 0 {
				n = len(rest)
			}
			tokens = append(tokens, formatToken{text: rest[:n]})
			rest = rest[n:]
		}
	}
	return tokens, nil
}

// unquoteHive reads a string that begins with its quote, and tells where it ends.
func unquoteHive(s string) (text string, n int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return b.String(), i + 1, true
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case octal(s[i+1:]):
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
		default:
			i++
			b.WriteByte(unescapeHive(s[i]))
		}
	}
	return "", 0, false
}

// octal says that s begins with the three digits of a byte below 128.
func octal(s string) bool {
	return len(s) >= 3 && (s[0] == '0' || s[0] == '1') && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' && s[2] <= '7'
}

func unescapeHive(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case '0':
		return 0
	}
	return c
}

// formatParser reads clauses of classes and properties.
type formatParser struct {
	rest []formatToken
	f    FormatChange
}

// next takes a token.
func (p *formatParser) next() formatToken {
	if len(p.rest) == 0 {
		return formatToken{}
	}
	t := p.rest[0]
	p.rest = p.rest[1:]
	return t
}

// word takes the next token if it is this word.
func (p *formatParser) word(word string) bool {
	if len(p.rest) == 0 || p.rest[0].quoted || !strings.EqualFold(p.rest[0].text, word) {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

func (p *formatParser) clause() error {
	for _, c := range []struct {
		word  string
		class *string
	}{{"INPUTFORMAT", &p.f.InputFormat}, {"OUTPUTFORMAT", &p.f.OutputFormat}, {"SERDE", &p.f.Serde}} {
		if !p.word(c.word) {
			continue
		}
		t := p.next()
		switch {
		case *c.class != "":
			return fmt.Errorf("%s is there twice", c.word)
		case !t.quoted || !goodClass(t.text):
			return fmt.Errorf("behind %s there is no class in quotes", c.word)
		}
		*c.class = t.text
		return nil
	}
	if p.word("WITH") && p.word("SERDEPROPERTIES") {
		return p.properties()
	}
	if len(p.rest) == 0 {
		return errors.New("it ends behind WITH")
	}
	return fmt.Errorf("%.100q is not known; known are %s", p.rest[0].text, formatForms)
}

// goodClass: no catalog holds a longer one.
func goodClass(name string) bool {
	const most = 255
	return name != "" && len(name) <= most && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) })
}

func (p *formatParser) properties() error {
	if p.f.Serde == "" || p.f.Properties != nil {
		return errors.New("SERDEPROPERTIES stand behind one SERDE, once")
	}
	p.f.Properties = make(map[string]string)
	if !p.word("(") {
		return errors.New("behind SERDEPROPERTIES there is no list in parentheses")
	}
	for {
		key := p.next()
		equal := p.word("=")
		value := p.next()
		switch _, twice := p.f.Properties[key.text]; {
		case !key.quoted || key.text == "" || !equal || !value.quoted:
			return errors.New("SERDEPROPERTIES are ('key'='value', …)")
		case twice:
			return fmt.Errorf("the property %.100q is there twice", key.text)
		case key.text == "path":
			return errors.New("the property path says where the table lies, and is no format's")
		}
		p.f.Properties[key.text] = value.text
		if p.word(")") {
			return nil
		}
		if !p.word(",") {
			return errors.New("SERDEPROPERTIES do not end")
		}
	}
}
