package cli

import "strings"

// nearest returns the candidate that needs the fewest edits to become name.
func nearest(name string, candidates []string) string {
	best, fewest := "", -1
	for _, c := range candidates {
		n := edits(name, c)
		if fewest < 0 || n < fewest {
			best, fewest = c, n
		}
	}
	return best
}

// maxTypos is how many edits apart a mistyped flag and the flag that was meant may be.
const maxTypos = 3

// didYouMean returns the end of an error about a long flag that does not exist, or "".
func didYouMean(name string, candidates []string) string {
	for _, c := range candidates {
		if len(name) > 2 && strings.HasPrefix(c, name) {
			return ": did you mean --" + c + "?"
		}
	}
	near := nearest(name, candidates)
	if edits(name, near) > min(maxTypos, len(name)/2) {
		return ""
	}
	return ": did you mean --" + near + "?"
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
