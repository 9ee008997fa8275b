package cli

import (
	"cmp"
	"strings"
)

// maxTypos is the largest number of edits between a mistyped flag and the intended flag.
const maxTypos = 3

// nearest returns the candidate that name probably stands for: a candidate with one typo, or
// else with the same words, or else with the fewest edits.
func nearest(name string, candidates []string) string {
	best, fewest := fewestEdits(name, candidates)
	if shared := sharingWords(name, candidates); fewest > 1 && shared != "" {
		return shared
	}
	return best
}

// fewestEdits returns the candidate with the fewest edits between candidate and name, and
// the number of edits.
func fewestEdits(name string, candidates []string) (best string, fewest int) {
	fewest = -1
	for _, c := range candidates {
		n := edits(name, c)
		if fewest < 0 || n < fewest {
			best, fewest = c, n
		}
	}
	return best, fewest
}

// sharingWords returns the longest candidate whose words are all in name, in their order
// (GRACE_PERIOD for TERMINATION_GRACE_PERIOD), or else the first candidate with the words of
// name, or "".
func sharingWords(name string, candidates []string) string {
	longest, first := "", ""
	for _, c := range candidates {
		switch {
		case hasWords(name, c) && len(c) > len(longest):
			longest = c
		case hasWords(c, name) && first == "":
			first = c
		}
	}
	return cmp.Or(longest, first)
}

// hasWords reports whether the words of a name, separated by hyphens or underscores, contain
// the words of another. Prefix does not count.
func hasWords(name, other string) bool {
	words := func(name string) string {
		return "-" + strings.ReplaceAll(strings.TrimPrefix(name, Prefix), "_", "-") + "-"
	}
	return words(other) != "--" && strings.Contains(words(name), words(other))
}

// didYouMean returns the flag that a long flag that does not exist probably stands for, or "".
func didYouMean(name string, candidates []string) string {
	name = hyphened(name)
	for _, c := range candidates {
		if len(name) > 2 && strings.HasPrefix(c, name) {
			return c
		}
	}
	near := nearest(name, candidates)
	if edits(name, near) > min(maxTypos, len(name)/2) && sharingWords(name, candidates) == "" {
		return ""
	}
	return near
}

// hyphened returns a name in lower case, with hyphens between the words: grace-period for
// gracePeriod, GRACE_PERIOD and Grace-Period.
func hyphened(name string) string {
	var b strings.Builder
	var last byte
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' && last >= 'a' && last <= 'z' {
			b.WriteByte('-')
		}
		b.WriteByte(c)
		last = c
	}
	return strings.ReplaceAll(strings.ToLower(b.String()), "_", "-")
}

// edits returns the Levenshtein distance of a and b in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
