package main

import (
	"cmp"
	"slices"
)

// judge returns the findings for stops, in the order of rules.txt.
func judge(stops []*stop) (found []finding) {
	for _, s := range stops {
		subjects := s.subjects()
		for _, e := range rules {
			rule := e["name"]
			for _, a := range subjects {
				if a.decided[rule] || !a.fit(e) {
					continue
				}
				a.decided[rule] = true
				f := finding{Line: cmp.Or(a.line, s.Name.line, 1), Rule: rule, Text: oneLine(fill(e["says"], a)),
					Object: s.object, Container: s.Name.text}
				if f.Text != "" && !slices.Contains(found, f) {
					found = append(found, f)
				}
			}
		}
	}
	return found
}
