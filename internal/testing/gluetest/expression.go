package gluetest

import (
	"regexp"
	"strings"
)

// expression is a condition on the values of a partition.
type expression interface {
	eval(values []string) (bool, error)
}

type both struct{ left, right expression } // AND

// Both sides are evaluated: a value that is not of its key's type fails the
// expression wherever it stands.
func (e both) eval(values []string) (bool, error) {
	l, err := e.left.eval(values)
	if err != nil {
		return false, err
	}
	r, err := e.right.eval(values)
	return l && r, err
}

type either struct{ left, right expression } // OR

func (e either) eval(values []string) (bool, error) {
	l, err := e.left.eval(values)
	if err != nil {
		return false, err
	}
	r, err := e.right.eval(values)
	return l || r, err
}

// comparison is KEY OP LITERAL, or KEY [NOT] IN (LITERAL, …).
type comparison struct {
	key      int
	typ      string
	op       string // "=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN"
	literals []scalar
}

func (e comparison) eval(values []string) (bool, error) {
	if e.key >= len(values) {
		return false, fail("InvalidStateException", "The partition has no value for key %d.", e.key)
	}
	v, err := cast(e.typ, values[e.key])
	if err != nil {
		// A value in the catalog that its own key's type does not allow.
		return false, fail("InvalidStateException", "%s", err)
	}
	n := v.compare(e.literals[0])
	switch e.op {
	case "=":
		return n == 0, nil
	case "<>":
		return n != 0, nil
	case "<":
		return n < 0, nil
	case "<=":
		return n <= 0, nil
	case ">":
		return n > 0, nil
	case ">=":
		return n >= 0, nil
	}
	in := false
	for _, l := range e.literals {
		in = in || v.compare(l) == 0
	}
	return in == (e.op == "IN"), nil
}

// parser reads an expression, token by token.
type parser struct {
	text   string
	tokens []string
	keys   []column
}

// tokens: a string with ” inside for a quote, a number or name, an operator.
var lexer = regexp.MustCompile(`^(?:'(?:[^']|'')*'|[\pL\pN_.+-]+|<>|<=|>=|[=<>(),])`)

func parseExpression(text string, keys []column) (expression, error) {
	if err := length("expression", text, 0, expressionLimit); err != nil {
		return nil, err
	}
	p := &parser{text: text, keys: keys}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		token := lexer.FindString(rest)
		if token == "" {
			return nil, p.unsupported()
		}
		p.tokens, rest = append(p.tokens, token), rest[len(token):]
	}
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if len(p.tokens) > 0 {
		return nil, p.unsupported()
	}
	return e, nil
}

func (p *parser) unsupported() error { return invalid("Unsupported expression '%s'", p.text) }

// take takes the next token if it is this word.
func (p *parser) take(word string) bool {
	if len(p.tokens) == 0 || !strings.EqualFold(p.tokens[0], word) {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

// next takes the next token; "" at the end.
func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) or() (expression, error) {
	e, err := p.and()
	for err == nil && p.take("OR") {
		var right expression
		right, err = p.and()
		e = either{e, right}
	}
	return e, err
}

func (p *parser) and() (expression, error) {
	e, err := p.term()
	for err == nil && p.take("AND") {
		var right expression
		right, err = p.term()
		e = both{e, right}
	}
	return e, err
}

func (p *parser) term() (expression, error) {
	if p.take("(") {
		e, err := p.or()
		if err == nil && !p.take(")") {
			err = p.unsupported()
		}
		return e, err
	}
	name := p.next()
	for i, k := range p.keys {
		if k.Name == name {
			return p.comparison(comparison{key: i, typ: k.Type})
		}
	}
	return nil, invalid("Invalid partition expression!")
}

func (p *parser) comparison(c comparison) (expression, error) {
	c.op = strings.ToUpper(p.next())
	if c.op == "NOT" && p.take("IN") {
		c.op = "NOT IN"
	}
	switch c.op {
	case "=", "<>", "<", "<=", ">", ">=":
		return p.literal(c)
	case "IN", "NOT IN":
		return p.in(c)
	case "BETWEEN":
		return p.between(c)
	}
	return nil, p.unsupported()
}

func (p *parser) in(c comparison) (expression, error) {
	if !p.take("(") {
		return nil, p.unsupported()
	}
	for {
		var err error
		if c, err = p.literal(c); err != nil {
			return nil, err
		}
		if !p.take(",") {
			break
		}
	}
	if !p.take(")") {
		return nil, p.unsupported()
	}
	return c, nil
}

func (p *parser) between(c comparison) (expression, error) {
	from, to := c, c
	from.op, to.op = ">=", "<="
	from, err := p.literal(from)
	if err != nil {
		return nil, err
	}
	if !p.take("AND") {
		return nil, p.unsupported()
	}
	to, err = p.literal(to)
	return both{from, to}, err
}

// literal adds the next token to a comparison's literals.
func (p *parser) literal(c comparison) (comparison, error) {
	t := p.next()
	if t == "" || strings.Contains("=<>(),", t[:1]) {
		return c, p.unsupported()
	}
	if t[0] == '\'' {
		t = strings.ReplaceAll(t[1:len(t)-1], "''", "'")
	}
	v, err := cast(c.typ, t)
	if err != nil {
		return c, invalid("%s", err)
	}
	c.literals = append(c.literals[:len(c.literals):len(c.literals)], v)
	return c, nil
}
