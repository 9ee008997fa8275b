package main

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// node is a value in a manifest, with the line. The zero node stands for a missing value
// and for null.
type node struct{ *yaml.Node }

// at returns the node that an alias refers to, or n.
func (n node) at() node {
	for n.Node != nil && n.Kind == yaml.AliasNode {
		n = node{n.Alias}
	}
	if n.Node != nil && n.Tag == "!!null" {
		return node{}
	}
	return n
}

// exists reports whether n has a value.
func (n node) exists() bool { return n.at().Node != nil }

// get returns the value at a path of keys.
func (n node) get(path ...string) node {
	for _, key := range path {
		n = n.at().field(key)
	}
	return n.at()
}

// field returns the value of a key, also from merged mappings (<<).
func (n node) field(key string) (found node) {
	if n.Node == nil || n.Kind != yaml.MappingNode {
		return node{}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch name := n.Content[i]; {
		case name.Value == key:
			return node{n.Content[i+1]}
		case name.Tag == "!!merge":
			for _, merged := range (node{n.Content[i+1]}).list() {
				if f := merged.at().field(key); f.exists() && !found.exists() {
					found = f
				}
			}
		}
	}
	return found
}

// list returns the items of a list; other values are lists of one item.
func (n node) list() (items []node) {
	n = n.at()
	if n.Node == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return []node{n}
	}
	for _, item := range n.Content {
		items = append(items, node{item})
	}
	return items
}

// text returns the text of a scalar, or "".
func (n node) text() string {
	n = n.at()
	if n.Node == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// number returns a scalar as an integer.
func (n node) number() (int, bool) {
	number, err := strconv.Atoi(n.text())
	return number, err == nil
}

// line returns the line of n, or otherwise if n is missing.
func (n node) line(otherwise int) int {
	if n.Node == nil {
		return otherwise
	}
	return n.Line
}

// templated reports whether {{ … }} stands for a value: in YAML, a mapping with a mapping
// as a key.
func (n node) templated() bool {
	if n.Node == nil {
		return false
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind == yaml.MappingNode || (node{child}).templated() {
			return true
		}
	}
	return false
}
