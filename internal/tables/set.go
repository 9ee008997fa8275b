package tables

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Set sets the field of a struct with a name, or with a tag that has the name, and reports whether there is one; case
// and hyphens do not matter, and "Hold.Open" is a field of a field. A bool becomes true, a slice grows by the parts
// between commas, and "zero" is no value. A value of a type that a function of parse returns, func(string) T or
// func(string) (T, error), is what the function returns. Set panics if the text is no such value.
func Set(target any, name, text string, parse ...any) (found bool) {
	at := reflect.ValueOf(target)
	for part := range strings.SplitSeq(name, ".") {
		if at = fieldOf(reflect.Indirect(at), part); !at.IsValid() {
			return false
		}
	}
	set(at, text, parse)
	return true
}

func fieldOf(in reflect.Value, name string) reflect.Value {
	for _, field := range reflect.VisibleFields(in.Type()) {
		if field.Tag.Get("name") == name || strings.EqualFold(field.Name, strings.ReplaceAll(name, "-", "")) {
			return in.FieldByIndex(field.Index)
		}
	}
	return reflect.Value{}
}

func set(at reflect.Value, text string, parse []any) {
	if text == "zero" {
		at.SetZero()
		return
	}
	for _, function := range append(parse, time.ParseDuration) {
		f := reflect.ValueOf(function)
		if f.Type().Out(0) != at.Type() {
			continue
		}
		results := f.Call([]reflect.Value{reflect.ValueOf(text)})
		if len(results) > 1 && !results[1].IsNil() {
			panic(results[1].Interface())
		}
		if at.Kind() == reflect.Slice {
			results[0] = reflect.AppendSlice(at, results[0])
		}
		at.Set(results[0])
		return
	}
	switch at.Kind() {
	case reflect.Bool:
		at.SetBool(true)
	case reflect.String:
		at.SetString(text)
	case reflect.Pointer:
		at.Set(reflect.New(at.Type().Elem()))
		set(at.Elem(), text, parse)
	case reflect.Slice:
		for part := range strings.SplitSeq(text, ",") {
			value := reflect.New(at.Type().Elem()).Elem()
			set(value, part, parse)
			at.Set(reflect.Append(at, value))
		}
	default:
		if _, err := fmt.Sscan(text, at.Addr().Interface()); err != nil {
			panic(err)
		}
	}
}

// Differing returns the fields of a struct whose text differs from that in another, as NAME=TEXT.
func Differing[T any](from, to T) (fields []string) {
	a, b := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range a.NumField() {
		if text := fmt.Sprint(b.Field(i)); text != fmt.Sprint(a.Field(i)) {
			fields = append(fields, a.Type().Field(i).Name+"="+text)
		}
	}
	return fields
}

// Lacking returns the words of want that are none of what was found, in which braces separate words, too.
func Lacking(found, want string) (words []string) {
	all := strings.FieldsFunc(found, func(r rune) bool { return strings.ContainsRune(" {}", r) })
	return slices.DeleteFunc(strings.Fields(want), func(word string) bool { return slices.Contains(all, word) })
}

// Read returns the rows of a table as structs, whose fields are the columns. See Set for parse.
func Read[T any](table string, parse ...any) (all []*T) {
	for _, cells := range Rows(table) {
		row := new(T)
		for i, cell := range cells {
			set(reflect.ValueOf(row).Elem().Field(i), cell, parse)
		}
		all = append(all, row)
	}
	return all
}
