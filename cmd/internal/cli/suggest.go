package cli

import "strings"

// maxTypos is the largest number of edits between a mistyped name and the one that was meant.
const maxTypos = 2

// nearest returns the candidate that name probably stands for: the one with the fewest edits,
// if those are few, or "". Case and the choice of hyphen or underscore do not count.
func nearest(name string, candidates []string) (near string) {
	plain := func(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }
	fewest := min(maxTypos, len(name)/2) + 1
	for _, c := range candidates {
		if n := edits(plain(name), plain(c)); n < fewest {
			near, fewest = c, n
		}
	}
	return near
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
