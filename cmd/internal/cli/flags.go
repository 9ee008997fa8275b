package cli

import (
	"reflect"
	"slices"

	"github.com/alecthomas/kong"
)

// flag is what Parse must know of a flag before kong builds a model. A test holds the
// flags of each grammar against kong's model of the grammar.
type flag struct {
	names    []string // first the name, then "no-" and the name if negatable, or aliases
	short    string
	env      string // the variable, or ""
	hasValue bool
	given    bool // on the command line or in the environment

	field reflect.StructField
	value reflect.Value
}

// flagValue is a field of a grammar; see values.go.
type flagValue interface {
	kong.MapperValue
	Given() bool
	all() []text
}

func (f *flag) name() string { return f.names[0] }

// dashed returns the short form as typed, or "".
func (f *flag) dashed() string {
	if f.short == "" {
		return ""
	}
	return "-" + f.short
}

// texts returns the values that the user gave the flag.
func (f *flag) texts() []text { return f.value.Addr().Interface().(flagValue).all() }

// valueError returns what is wrong with a text as the flag's value.
func (f *flag) valueError(text string) error {
	value := reflect.New(f.field.Type).Interface().(flagValue)
	token := kong.Token{Value: text, Type: kong.FlagValueToken}
	if err := value.Decode(&kong.DecodeContext{Scan: kong.ScanFromTokens(token)}); err != nil {
		return err
	}
	for _, t := range value.all() {
		if t.err != nil {
			return t.err
		}
	}
	return nil
}

// needs returns what the flag needs to have an effect; see met.
func (f *flag) needs() string { return f.field.Tag.Get("needs") }

// flagsOf returns the flags of a grammar, a pointer to a struct.
func flagsOf(grammar any) []flag {
	return appendFlags(make([]flag, 0, 40), reflect.ValueOf(grammar).Elem())
}

// appendFlags appends the flags of a grammar or of a section.
func appendFlags(flags []flag, v reflect.Value) []flag {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch {
		case field.Type == reflect.TypeFor[Line]():
		case field.Anonymous:
			flags = appendFlags(flags, v.Field(i))
		default:
			flags = append(flags, flag{
				names:    namesOf(field.Tag),
				short:    field.Tag.Get("short"),
				env:      field.Tag.Get("env"),
				hasValue: field.Type != reflect.TypeFor[Bool]() && field.Type != reflect.TypeFor[Choice](),
				field:    field,
				value:    v.Field(i),
			})
		}
	}
	return flags
}

// namesOf returns the long names of a flag.
func namesOf(tag reflect.StructTag) []string {
	name := tag.Get("name")
	if _, negatable := tag.Lookup("negatable"); negatable {
		return []string{name, "no-" + name}
	}
	return []string{name}
}

// part returns a pointer to a struct of the given flags' fields, for kong: building a
// model of all flags, with their help, is a large part of start-up. The fields are
// copies.
func part(given []*flag) reflect.Value {
	var fields []reflect.StructField
	for _, f := range given {
		tag := `name:"` + f.name() + `" short:"` + f.short + `" env:"` + f.env + `"`
		if len(f.names) > 1 {
			tag += ` negatable:""`
		}
		fields = append(fields, reflect.StructField{Name: f.field.Name, Type: f.field.Type, Tag: reflect.StructTag(tag)})
	}
	return reflect.New(reflect.StructOf(fields))
}

// flagsIn returns the flags of kong's model, for grammars without sections.
func flagsIn(model *kong.Application) (flags []flag) {
	for _, f := range model.Flags {
		known := flag{names: append([]string{f.Name}, f.Aliases...), hasValue: !f.IsBool() && !f.IsCounter()}
		if f.Short != 0 {
			known.short = string(f.Short)
		}
		flags = append(flags, known)
	}
	return flags
}

// long returns the flag with a long name, or nil.
func long(flags []flag, name string) *flag {
	return find(flags, func(f *flag) bool { return slices.Contains(f.names, name) })
}

// short returns the flag with a short name, or nil.
func short(flags []flag, name string) *flag {
	return find(flags, func(f *flag) bool { return f.short == name })
}

func find(flags []flag, is func(*flag) bool) *flag {
	for i := range flags {
		if is(&flags[i]) {
			return &flags[i]
		}
	}
	return nil
}
