package main

import (
	"strings"
	"testing"
	"time"
)

// TestRow: a column is drawn once all requests have ended, as bad if a request failed.
func TestRow(t *testing.T) {
	r := &row{Name: "bare", each: 2}
	add := func(n int, answered bool) { r.add(time.Duration(n)*column/2, answered) }
	for _, step := range []struct {
		number   int
		answered bool
		want     string
	}{
		{1, true, ""}, {0, true, "."}, {4, true, "."}, {5, true, "."},
		{3, false, "."}, {2, true, ".x."}, {7, false, ".x."}, {6, false, ".x.x"},
	} {
		add(step.number, step.answered)
		if got := r.line(&plain); got != "bare      "+step.want {
			t.Errorf("after request %d: %q, want %q", step.number, got, step.want)
		}
	}
	r.finish(2040 * time.Millisecond)
	if got := r.line(&plain); !strings.HasSuffix(got, ".x.x gone after 2.0 s") {
		t.Errorf("at the end: %q", got)
	}
	if got := r.sum(); got != (cell{8, 3}) {
		t.Errorf("the sum is %+v", got)
	}
}

// sound returns the rows of a sound run.
func sound() []*row {
	var rows []*row
	for _, c := range []struct {
		name          string
		columns, from int
		until         int // half fails in these columns
		gone          float64
	}{{"bare", 16, 2, 14, 2}, {"sleep 2", 16, 10, 14, 2003}, {"sleep 10", 45, 0, 0, 10003}, {"lameduck", 33, 0, 0, 7003}} {
		r := &row{Name: c.name, GoneMS: c.gone}
		for i := range c.columns {
			failed := 0
			if c.from <= i && i < c.until {
				failed = 12
			}
			r.Columns = append(r.Columns, cell{eachColumn, failed})
		}
		rows = append(rows, r)
	}
	return rows
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(bare, short, long, held *row)
		broken string
	}{
		"sound":               {func(bare, short, long, held *row) {}, ""},
		"bare loses nothing":  {func(bare, short, long, held *row) { bare.Columns = long.Columns }, "bare: half"},
		"short loses nothing": {func(bare, short, long, held *row) { short.Columns = long.Columns }, "sleep 2: half"},
		"short loses more":    {func(bare, short, long, held *row) { short.Columns = bare.Columns }, "sleep 2: half"},
		"long loses":          {func(bare, short, long, held *row) { long.Columns[3].Failed = 1 }, "sleep 10: no request fails, found 1"},
		"lameduck loses":      {func(bare, short, long, held *row) { held.Columns[3].Failed = 1 }, "lameduck: no request fails, found 1"},
		"lameduck is slow":    {func(bare, short, long, held *row) { held.GoneMS = 10004 }, "gone sooner than with sleep 10"},
		"a request is gone":   {func(bare, short, long, held *row) { held.Columns[3].Ended-- }, "lameduck: 824 requests in 33"},
	} {
		rows := sound()
		c.change(rows[0], rows[1], rows[2], rows[3])
		err := judge(rows)
		switch {
		case err == nil && c.broken != "":
			t.Errorf("%s: no claim is broken", name)
		case err != nil && (c.broken == "" || !strings.Contains(err.Error(), c.broken) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: broken are %v", name, err)
		}
	}
}

// TestWidth: no line is wider than 80 columns.
func TestWidth(t *testing.T) {
	rows := sound()
	for _, r := range rows {
		r.each, r.finished = eachColumn, true
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, r.line(&plain))
	}
	lines = append(lines, marks(lag)...)
	for _, text := range []string{table(rows), listed(contenders("lameduck")), intro, next, wrapped(strings.Repeat("▁▂word ", 100))} {
		lines = append(lines, strings.Split(text, "\n")...)
	}
	for _, line := range lines {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
}

// TestTable: the table has the numbers of the rows.
func TestTable(t *testing.T) {
	text := table(sound())
	for _, want := range []string{
		"bare             400       144         0.0 s\n", "sleep 10        1125         0        10.0 s\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
