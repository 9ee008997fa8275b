package main

import (
	"strconv"

	"go.yaml.in/yaml/v3"
)

// node is a value in a manifest, which knows its line. The zero node is nothing,
// and so is null.
type node struct{ *yaml.Node }

// at is the node itself where it is an alias.
func (n node) at() node {
	for n.Node != nil && n.Kind == yaml.AliasNode {
		n = node{n.Alias}
	}
	if n.Node != nil && n.Tag == "!!null" {
		return node{}
	}
	return n
}

// there reports whether there is anything.
func (n node) there() bool { return n.at().Node != nil }

// get is what a path of keys leads to.
func (n node) get(path ...string) node {
	for _, key := range path {
		n = n.at().field(key)
	}
	return n.at()
}

// field is the value of a key, from what is merged in (<<) if need be.
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
				if f := merged.at().field(key); f.there() && !found.there() {
					found = f
				}
			}
		}
	}
	return found
}

// list are the items of a list, or the value alone.
func (n node) list() (items []node) {
	if n = n.at(); n.Node == nil {
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

// text is a scalar's, or empty.
func (n node) text() string {
	if n = n.at(); n.Node == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// number is a scalar's value as an integer.
func (n node) number() (int, bool) {
	number, err := strconv.Atoi(n.text())
	return number, err == nil
}

// line is where it begins, or otherwise.
func (n node) line(otherwise int) int {
	if n.Node == nil {
		return otherwise
	}
	return n.Line
}

// templated reports whether somewhere {{ … }} stands for a value: YAML takes it
// for a mapping whose key is a mapping.
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
