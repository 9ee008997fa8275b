package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxWidth is the greatest width of a line of the report, in characters, with "lameduck: "
// before the line.
const MaxWidth = 160

// room is the greatest width of a line without its prefix.
const room = MaxWidth - len("lameduck: ")

// part is a part of a line that may be left out. Of the parts for which a line has no room
// the parts with the least weight are left out.
type part struct {
	forms  []string // the text, and shorter texts for a line with less room
	weight int
	brief  string // for a line without room for any of forms; ""
}

// fit returns a line of at most room characters: the head, and the parts in their order.
// The head is brief if the whole head has no room, or no room beside the weightiest part for
// which a line with the brief head has room.
func fit(head func(brief bool) string, parts []part) string {
	line, brief := head(false), head(true)
	least := 0
	for _, i := range byWeight(parts) {
		if text := parts[i].within(room - width(brief)); text != "" {
			least = width("; " + text)
			break
		}
	}
	if width(line)+least > room {
		line = brief
	}
	for _, text := range choose(parts, room-width(line)) {
		if text != "" {
			line += "; " + text
		}
	}
	return line
}

// within returns the shortest form of the part, or else the brief form, or "" without room.
func (p *part) within(room int) string {
	for _, text := range []string{p.forms[len(p.forms)-1], p.brief} {
		if text != "" && width("; "+text) <= room {
			return text
		}
	}
	return ""
}

// choose returns a form of each part, or "" for a part without room. The weightiest parts
// are chosen first, each in its shortest form, and then made as long as there is room.
func choose(parts []part, room int) []string {
	order := byWeight(parts)
	chosen := make([]string, len(parts))
	for _, i := range order {
		chosen[i] = parts[i].within(room)
		if chosen[i] != "" {
			room -= width("; " + chosen[i])
		}
	}
	for _, i := range order {
		longer := func(form string) bool { return width(form)-width(chosen[i]) <= room }
		if longest := slices.IndexFunc(parts[i].forms, longer); chosen[i] != "" && longest >= 0 {
			room -= width(parts[i].forms[longest]) - width(chosen[i])
			chosen[i] = parts[i].forms[longest]
		}
	}
	return chosen
}

// byWeight returns the indexes of parts, the weightiest first.
func byWeight(parts []part) (order []int) {
	for i := range parts {
		at := 0
		for at < len(order) && parts[order[at]].weight >= parts[i].weight {
			at++
		}
		order = slices.Insert(order, at, i)
	}
	return order
}

func width(text string) int { return utf8.RuneCountInString(text) }

// words returns the texts of parts, in full.
func words(parts []part) []string {
	texts := []string{}
	for _, p := range parts {
		texts = append(texts, p.forms[0])
	}
	return texts
}

// join returns the phrases that are not empty, with commas.
func join(phrases ...string) string {
	return strings.Join(slices.DeleteFunc(phrases, func(phrase string) bool { return phrase == "" }), ", ")
}
