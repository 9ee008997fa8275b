package cli

import "strings"

// maxTypos is the largest number of edits between a mistyped name and the one that was meant.
const maxTypos = 2

// nearest returns the candidate that name probably stands for: the one with the fewest edits,
// if those are few, or "". Case and the choice of hyphen or underscore do not count.
func nearest(name string, candidates []string) (near string) {
	plain := func(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }
	for n := range min(maxTypos, len(name)/2) + 1 {
		for _, c := range candidates {
			if isNear(plain(name), plain(c), n) {
				return c
			}
		}
	}
	return ""
}

// isNear reports whether at most n edits make b of a: a byte inserted, deleted, changed, or
// swapped with its neighbor.
func isNear(a, b string, n int) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" || n == 0 {
		return len(a)+len(b) <= n
	}
	swapped := len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0]
	return swapped && isNear(a[2:], b[2:], n-1) ||
		isNear(a[1:], b, n-1) || isNear(a, b[1:], n-1) || isNear(a[1:], b[1:], n-1)
}
