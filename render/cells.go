package render

// span is where a value's text lies. A text of no bytes is NULL: each other value has one
// (an empty string is `""`).
type span struct{ off, n uint32 }

// cells are the texts of successive values of one column. Several may share one text, as
// those of a dictionary do.
type cells struct {
	text []byte // what the spans are of: own, or one that the source keeps unchanged until it fills these cells again
	at   []span
	own  []byte // memory for texts, kept from one fill to the next
}

// reset empties c, for texts in memory of its own.
func (c *cells) reset() {
	c.own, c.at = c.own[:0], c.at[:0]
	c.text = nil
}

// len is the number of values.
func (c *cells) len() int { return len(c.at) }

// end ends a value: it is what was appended to own since it was start bytes long.
func (c *cells) end(start int) { c.at = append(c.at, span{uint32(start), uint32(len(c.own) - start)}) }

// null appends a NULL.
func (c *cells) null() { c.at = append(c.at, span{}) }

// done says that the texts are in own.
func (c *cells) done() { c.text = c.own }
