package table

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// node is a value of an entry with its path, for messages. null, and what is
// not there, are absent (v is nil), and what else the dialect says.
type node struct {
	dialect dialect
	path    string
	v       any
}

// child returns a field of an object, named in snake_case.
func (n node) child(key string) (node, error) {
	key = n.dialect.field(key)
	c := node{dialect: n.dialect, path: key}
	if n.path != "" {
		c.path = n.path + "." + key
	}
	if n.v == nil {
		return c, nil
	}
	obj, ok := n.v.(map[string]any)
	if !ok {
		return node{}, n.mismatch("an object")
	}
	if v := obj[key]; !n.dialect.absent(v) {
		c.v = v
	}
	return c, nil
}

func (n node) mismatch(want string) error {
	return fmt.Errorf("%s is %s, not %s", n.path, typeName(n.v), want)
}

// text returns a child that is a string, "" if absent.
func (n node) text(key string) (string, error) {
	c, err := n.child(key)
	if err != nil || c.v == nil {
		return "", err
	}
	s, ok := c.v.(string)
	if !ok {
		return "", c.mismatch("a string")
	}
	return s, nil
}

// list returns the items of a child that is an array.
func (n node) list(key string) ([]node, error) {
	c, err := n.child(key)
	if err != nil || c.v == nil {
		return nil, err
	}
	arr, ok := c.v.([]any)
	if !ok {
		return nil, c.mismatch("an array")
	}
	out := make([]node, len(arr))
	for i, v := range arr {
		out[i] = node{dialect: n.dialect, path: c.path + "[" + strconv.Itoa(i) + "]", v: v}
	}
	return out, nil
}

// scalars returns a child that is an object of scalars, each as written.
func (n node) scalars(key string) (map[string]string, error) {
	c, err := n.child(key)
	if err != nil || c.v == nil {
		return map[string]string{}, err
	}
	obj, ok := c.v.(map[string]any)
	if !ok {
		return nil, c.mismatch("an object")
	}
	out := make(map[string]string, len(obj))
	for k, v := range obj {
		switch v := v.(type) {
		case nil:
		case string: // an empty one is a value
			out[k] = v
		case json.Number:
			out[k] = v.String()
		case bool:
			out[k] = strconv.FormatBool(v)
		default:
			if !n.dialect.absent(v) {
				return nil, node{path: c.path + "." + k, v: v}.mismatch("a string")
			}
		}
	}
	return out, nil
}

// integer returns a child that is a whole number, 0 if absent.
func (n node) integer(key string) (int64, error) {
	c, err := n.child(key)
	if err != nil || c.v == nil {
		return 0, err
	}
	num, ok := c.v.(json.Number)
	if !ok {
		return 0, c.mismatch("a number")
	}
	i, err := num.Int64()
	if err != nil {
		return 0, fmt.Errorf("%s is %s, not a whole number", c.path, num)
	}
	return i, nil
}

func (n node) boolean(key string) (bool, error) {
	c, err := n.child(key)
	if err != nil || c.v == nil {
		return false, err
	}
	b, ok := c.v.(bool)
	if !ok {
		return false, c.mismatch("a boolean")
	}
	return b, nil
}
