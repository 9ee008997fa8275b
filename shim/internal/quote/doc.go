// Package quote makes text from outside safe to print: arguments, variables, paths,
// names of sockets and programs, words of the kernel. Such text may hold terminal
// escapes, newlines that would forge a line of the log, direction marks that reorder
// the text on a screen (Trojan Source), and bytes that are not UTF-8.
//
// Line is applied to all text that lameduck prints, next to the output. Word and Words
// are applied to values, where a reader must see the end of a value. InWords spells durations.
package quote
