package report

import "slices"

// Columns is the greatest width of a sparkline.
const Columns = 30

// Sparkline draws a bar for each number, or for each group of numbers if there are more
// than [Columns]. The highest bar is full.
func Sparkline(numbers []int) (line string) {
	groupSize := (len(numbers)-1)/Columns + 1
	highest := 1
	var sums []int
	for group := range slices.Chunk(numbers, groupSize) {
		sum := 0
		for _, n := range group {
			sum += n
		}
		sums = append(sums, sum)
		highest = max(highest, sum)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	for _, sum := range sums {
		line += string(bars[(sum*(len(bars)-1)+highest-1)/highest])
	}
	return line
}
