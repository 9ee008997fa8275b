package box

import (
	"regexp"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// Row is a row of a table, by the names of the columns.
type Row map[string]string

// Table reads a table: a line with the names of its columns, and a line for each row, with
// "|" between the cells. A line that begins with "/" goes on with the row above.
func Table(text string) (rows []Row) {
	all := tables.Rows(regexp.MustCompile(`\n\s*/ `).ReplaceAllString(text, " / "))
	for _, cells := range all[1:] {
		row := Row{}
		for i, cell := range cells {
			row[all[0][i]] = cell
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
