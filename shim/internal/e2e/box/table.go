package box

import (
	"strings"
	"time"
)

// Row is a row of a table, by the names of the columns.
type Row map[string]string

// Table reads a table: a line with the names of its columns, and a line for each row, with
// "|" between the cells.
func Table(text string) (rows []Row) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	names := strings.Split(lines[0], "|")
	for _, line := range lines[1:] {
		row := Row{}
		for i, cell := range strings.Split(line, "|") {
			row[strings.TrimSpace(names[i])] = strings.TrimSpace(cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// Time returns the duration in a column, 0 for an empty cell.
func (r Row) Time(column string) time.Duration {
	d, _ := time.ParseDuration(r[column])
	return d
}
