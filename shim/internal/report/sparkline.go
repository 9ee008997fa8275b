package report

import "strings"

// Columns is the greatest width of a sparkline.
const Columns = 30

// Sparkline draws a bar for each number, or for each group of numbers if there are more
// than [Columns]. The highest bar is full.
func Sparkline(numbers []int) string {
	var sums []int
	groupSize := (len(numbers) + Columns - 1) / Columns
	highest := 1
	for i, n := range numbers {
		if i%groupSize == 0 {
			sums = append(sums, 0)
		}
		sums[len(sums)-1] += n
		highest = max(highest, sums[len(sums)-1])
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var line strings.Builder
	for _, n := range sums {
		line.WriteRune(bars[(n*(len(bars)-1)+highest-1)/highest])
	}
	return line.String()
}
