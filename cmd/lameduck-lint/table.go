package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/lameduck-init/lameduck/shim"
)

// pattern is a regular expression.
type pattern string

// compiled has the patterns that were used.
var compiled = map[pattern]*regexp.Regexp{}

func (p pattern) compile() *regexp.Regexp {
	if compiled[p] == nil {
		compiled[p] = regexp.MustCompile(string(p))
	}
	return compiled[p]
}

func (p pattern) matches(text string) bool { return p.compile().MatchString(text) }

// The tables: what is known of images and servers, the platforms, and what is wrong at a stop.
var (
	//go:embed known.txt platforms.txt rules.txt
	tables    embed.FS
	known     = blocks("known.txt")
	platforms = blocks("platforms.txt")
	rules     = blocks("rules.txt")
)

// entry is a block of a table: the values of fields.
type entry map[string]string

// blocks returns the blocks of a table, lines with a field each, or a comment. The fields of a block with a name are
// those of the blocks below it, too.
func blocks(table string) (list []entry) {
	text, _ := tables.ReadFile(table)
	var named entry
	for block := range strings.SplitSeq(string(text), "\n\n") {
		e := entry{}
		for line := range strings.SplitSeq(block, "\n") {
			if field, value, isField := strings.Cut(line, ":"); isField && line[0] != '#' {
				e[field] = strings.TrimSpace(value)
			}
		}
		switch {
		case len(e) == 0:
		case e["name"] != "":
			named = e
		default:
			for field, value := range named {
				e[field] = cmp.Or(e[field], value)
			}
			list = append(list, e)
		}
	}
	return list
}

// lookUp returns what is known of an image, a server or a call.
func lookUp(kind, name string) entry {
	found := entry{}
	for _, e := range slices.Backward(known) { // the first counts
		if want, isKind := e[kind]; isKind && pattern(want).matches(name) {
			maps.Copy(found, e)
		}
	}
	return found
}

// funcs are those of templates.
var funcs = template.FuncMap{
	"seconds": func(d any) string { return shim.InWords("%s", d) },
	"percent": strings.NewReplacer("%", "%25").Replace,
	"escape":  strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C").Replace,
	"json": func(value any) string {
		text, _ := json.Marshal(value) // cannot fail: strings and a number
		return string(text)
	},
}

// parsed has the templates that were used.
var parsed = map[string]*template.Template{}

// fill returns a template, filled in from a value. What the value does not have is empty, and so is what a method
// returns that panics for lack of it: text/template makes errors of both.
func fill(text string, from any) string {
	if parsed[text] == nil {
		parsed[text] = template.Must(template.New("").Funcs(funcs).Parse(text))
	}
	var out strings.Builder
	_ = parsed[text].Execute(&out, from)
	return out.String()
}
