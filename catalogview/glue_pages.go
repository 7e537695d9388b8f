package catalogview

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"
)

// The most that one page holds.
const (
	gluePage          = 100 // of databases and tables
	gluePartitionPage = 1000
)

// glueListing is a listing in pages.
type glueListing struct {
	glueCall
	member string // of an answer, that holds the elements
	named  bool   // each of them has a Name
	most   int32  // elements in a page
	// send asks for a page; token nil: the first.
	send func(ctx context.Context, api *glue.Client, token *string, most int32) error
}

type gluePageOf struct {
	elements [][]byte
	token    string // of the next page; "": this is the last
}

// size is what the elements take, in bytes.
func (p gluePageOf) size() int {
	n := 0
	for _, e := range p.elements {
		n += len(e)
	}
	return n
}

// pages yields each page, empty ones too: they say nothing of the next. After an
// error nothing follows. Of a page that is too large a tenth is asked for.
func (g *Glue) pages(ctx context.Context, l glueListing) iter.Seq2[gluePageOf, error] {
	return func(yield func(gluePageOf, error) bool) {
		seen := digests{}
		var token *string
		for most := l.most; ; {
			page, err := askGlue(ctx, g, l.glueCall, func(ctx context.Context, api *glue.Client) error {
				return l.send(ctx, api, token, most)
			}, l.read)
			if errors.Is(err, errGlueBody) && most > 1 {
				most = max(most/10, 1)
				continue
			}
			if err == nil && page.token != "" && !seen.add(page.token) {
				err = l.fail(&glueError{text: "the answer names a page as the next that was read already"})
			}
			if err != nil {
				yield(gluePageOf{}, err)
				return
			}
			if !yield(page, nil) || page.token == "" {
				return
			}
			token = aws.String(page.token)
		}
	}
}

// read takes a page. An empty list is sent as one: an answer without any is no page,
// and would make a full database an empty one.
func (l glueListing) read(body []byte) (gluePageOf, error) {
	var p gluePageOf
	list := member(body, l.member)
	if len(list) == 0 || list[0] != '[' {
		return p, oddAnswer("no list " + l.member + " in the answer")
	}
	for e := range elements(list) {
		if e[0] != '{' {
			return p, oddAnswer("an element of " + l.member + " in the answer is no object")
		}
		if l.named && jsonText(member(e, "Name")) == "" {
			return p, oddAnswer("an element of " + l.member + " in the answer has no name")
		}
		p.elements = append(p.elements, e)
	}
	if token := member(body, "NextToken"); token != nil {
		if token[0] != '"' {
			return p, oddAnswer("NextToken in the answer is no string")
		}
		p.token = jsonText(token)
	}
	return p, nil
}

// digests is a set of lists of texts, at a fixed cost for each.
type digests map[[16]byte]struct{}

// add is false for what is in the set.
func (s digests) add(texts ...string) bool {
	d := digestOf(texts)
	_, twice := s[d]
	s[d] = struct{}{}
	return !twice
}

func digestOf(texts []string) [16]byte {
	h := sha256.New()
	var size [8]byte
	for _, s := range texts {
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	return [16]byte(h.Sum(nil)[:16])
}

// readMember takes an answer whose member of that name is an object, and returns it.
func readMember(name string) func(body []byte) ([]byte, error) {
	return func(body []byte) ([]byte, error) {
		object := member(body, name)
		if len(object) == 0 || object[0] != '{' {
			return nil, oddAnswer("no " + name + " in the answer")
		}
		return object, nil
	}
}
