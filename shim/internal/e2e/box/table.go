package box

import (
	"regexp"
	"testing"

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

// Each calls test for each row of a table, as tests beside each other, which the column "case" names.
func Each(t *testing.T, table string, test func(t *testing.T, c Row)) {
	t.Helper()
	for _, c := range Table(table) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}
