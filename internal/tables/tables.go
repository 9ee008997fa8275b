// Package tables reads the tables of test data.
package tables

import "strings"

// Rows returns the cells of a table's rows. A row is a line, and the indented lines below;
// vertical bars separate its cells. Lines that begin with # are comments.
func Rows(table string) (rows [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(table, "\n    ", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		rows = append(rows, cells)
	}
	return rows
}
