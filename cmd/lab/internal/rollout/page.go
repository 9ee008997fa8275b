package rollout

import (
	"fmt"
	"strings"
)

// pageRows are the contenders of the README's tables, and the words in the first column.
var pageRows = map[scene][][2]string{
	steady: {
		{"tini", "tini"},
		{sleepFor(5), sleepFor(5)},
		{sleepFor(10), sleepFor(10)},
		{sleepFor(14), sleepFor(14)},
		{defaultHold, "`" + defaultHold + "`"},
		{defaultHold + short, "the same with `--quiet-for=1s`"},
		{"oracle", "TERM at the moment of the removal (an oracle)"},
	},
	kept: {
		{"tini", "tini"},
		{sleepFor(5), sleepFor(5)},
		{sleepFor(keptSleep), sleepFor(keptSleep)},
		{"lameduck --until=settled", "`lameduck --until=settled`"},
		{defaultHold, "`" + defaultHold + "`"},
		{defaultHold + short, "the same with `--quiet-for=1s`"},
	},
	sparse: {
		{"tini", "tini"},
		{sleepFor(5), sleepFor(5)},
		{sleepFor(10), sleepFor(10)},
		{defaultHold, "`" + defaultHold + "`"},
		{defaultHold + short, "the same with `--quiet-for=1s`"},
		{floored, "`" + floored + "`"},
	},
}

// page returns the README's tables, each with the number of stops in a row.
func page(f *findings) string {
	var b strings.Builder
	for _, s := range f.Scenes {
		fmt.Fprintf(&b, "%s, %d stops each:\n\n", s.Scene.title(), s.Contenders[0].All.Stops)
		if s.Scene == kept {
			s.pageByServer(&b)
		} else {
			s.pageOfAll(&b)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (f *sceneFigures) pageOfAll(b *strings.Builder) {
	b.WriteString("| under | requests | failed | stops that lose any | stop to exit: median | 95 % |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	f.eachRow(func(words string, c *figures) {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %s | %s |\n", words, c.All.Requests, c.All.Failed, c.All.Losing,
			seconds(c.All.MedianMS), seconds(c.All.P95MS))
	})
}

// pageByServer has columns for dying servers and for servers that close kept connections.
func (f *sceneFigures) pageByServer(b *strings.Builder) {
	dying := func(s *server) bool { return !s.closesKept }
	graceful := func(s *server) bool { return s.closesKept }
	b.WriteString("| under | requests | failed: the server dies | the server is graceful | stop to exit: median | 95 % |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	f.eachRow(func(words string, c *figures) {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %s | %s |\n", words, c.All.Requests, c.partOf(dying).Failed, c.partOf(graceful).Failed,
			seconds(c.All.MedianMS), seconds(c.All.P95MS))
	})
}

func (f *sceneFigures) eachRow(write func(words string, c *figures)) {
	for _, row := range pageRows[f.Scene] {
		if c := f.find(row[0]); c != nil {
			write(row[1], c)
		}
	}
}
