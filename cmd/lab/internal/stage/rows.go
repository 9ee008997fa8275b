package stage

import "strings"

// Rows returns the columns of each row of a table, and empty columns up to the widest table's. Empty
// lines and comments are left out.
func Rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := make([]string, 9)
		for i, column := range strings.Split(line, "|") {
			columns[i] = strings.TrimSpace(column)
		}
		all = append(all, columns)
	}
	return all
}
