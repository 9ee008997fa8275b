package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// The types of the flags' values. Decode, which kong calls for each value on the command
// line or in the environment, keeps the text and the error: --help wins over a bad value,
// and an error names the flag or the variable.

// Duration is zero or more; a Length is more than zero.
type (
	Duration    struct{ single[time.Duration] }
	Length      struct{ single[time.Duration] }
	GracePeriod struct{ single[time.Duration] }
)

// Single values: the last value counts.
type (
	Condition      struct{ single[shim.Condition] }
	Preset         struct{ single[string] }
	Signal         struct{ single[shim.Signal] }
	Schedule       struct{ single[shim.Schedule] }
	Health         struct{ single[shim.HealthSpec] }
	HealthMode     struct{ single[shim.HealthMode] }
	Path           struct{ single[string] }
	TerminationLog struct{ single[string] }
	Words          struct{ single[[]string] }
	Level          struct{ single[shim.Level] }
	Format         struct{ single[bool] } // JSON
)

// Values that add up, separated by commas or given again. Paths are not separated.
type (
	Rewrites   struct{ list[shim.Rewrite] }
	SignalList struct{ list[shim.Signal] }
	ExitCodes  struct{ list[shim.ExitMap] }
	Ports      struct{ list[uint16] }
	Peers      struct{ list[netip.Prefix] }
	Paths      struct{ list[string] }
)

// Bool is set by the flag alone, or by a word for yes or no. Choice differs from Bool if
// the flag is not given: shim.Auto.
type (
	Bool   struct{ single[bool] }
	Choice struct{ single[shim.Choice] }
)

// The methods by which kong reads the values; see kong.MapperValue.

func (v *Duration) Decode(ctx *kong.DecodeContext) error    { return v.decode(ctx, parseDuration) }
func (v *Length) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, parseLength) }
func (v *GracePeriod) Decode(ctx *kong.DecodeContext) error { return v.decode(ctx, parseGracePeriod) }
func (v *Condition) Decode(ctx *kong.DecodeContext) error   { return v.decode(ctx, parseCondition) }
func (v *Preset) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, ParsePreset) }
func (v *Signal) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, parseSignal) }
func (v *Schedule) Decode(ctx *kong.DecodeContext) error    { return v.decode(ctx, parseSchedule) }
func (v *Health) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, parseHealth) }
func (v *HealthMode) Decode(ctx *kong.DecodeContext) error {
	return v.decode(ctx, parseHealthMode)
}
func (v *Path) Decode(ctx *kong.DecodeContext) error { return v.decode(ctx, parsePath) }
func (v *TerminationLog) Decode(ctx *kong.DecodeContext) error {
	return v.decode(ctx, parseTerminationLog)
}
func (v *Level) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, parseLevel) }
func (v *Format) Decode(ctx *kong.DecodeContext) error     { return v.decode(ctx, parseFormat) }
func (v *Rewrites) Decode(ctx *kong.DecodeContext) error   { return v.decode(ctx, parseRewrite) }
func (v *SignalList) Decode(ctx *kong.DecodeContext) error { return v.decode(ctx, parseSignal) }
func (v *ExitCodes) Decode(ctx *kong.DecodeContext) error  { return v.decode(ctx, parseExitMap) }
func (v *Ports) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, parsePort) }
func (v *Peers) Decode(ctx *kong.DecodeContext) error      { return v.decode(ctx, parsePeer) }
func (v *Paths) Decode(ctx *kong.DecodeContext) error      { return v.decodeWhole(ctx, parsePath) }
func (v *Bool) Decode(ctx *kong.DecodeContext) error       { return decodeBool(&v.single, ctx, parseBool) }
func (v *Choice) Decode(ctx *kong.DecodeContext) error {
	return decodeBool(&v.single, ctx, parseChoice)
}

// Decode reads a command. Quotes and flags in the text belong to the command: the hints of
// remedied would mislead.
func (v *Words) Decode(ctx *kong.DecodeContext) error {
	word, err := popText(ctx)
	if err != nil {
		return err
	}
	command, wrong := parseCommand(word)
	v.Value, v.texts = command, []text{{word, wrong}}
	return nil
}

// IsBool reports that the flag may be given without a value; see kong.BoolMapperValue.
func (v *Bool) IsBool() bool { return true }

// IsBool reports that the flag may be given without a value; see kong.BoolMapperValue.
func (v *Choice) IsBool() bool { return true }

// single is a value that replaces an earlier value of the flag.
type single[T any] struct {
	Value T
	texts []text // at most one
}

// list is a value that adds up.
type list[T any] struct {
	Values []T
	texts  []text
}

// text is a value as the user wrote the value, and its error.
type text struct {
	text string
	err  error
}

// Given reports whether the flag or its variable was given.
func (v *single[T]) Given() bool { return len(v.texts) > 0 }

// Given reports whether the flag or its variable was given.
func (v *list[T]) Given() bool { return len(v.texts) > 0 }

func (v *single[T]) all() []text { return v.texts }
func (v *list[T]) all() []text   { return v.texts }

func (v *single[T]) decode(ctx *kong.DecodeContext, parse func(string) (T, error)) error {
	word, err := popText(ctx)
	if err != nil {
		return err
	}
	v.set(word, parse)
	return nil
}

func (v *single[T]) set(word string, parse func(string) (T, error)) {
	value, err := parse(word)
	v.Value, v.texts = value, []text{{word, remedied(word, err)}}
}

func (v *list[T]) decode(ctx *kong.DecodeContext, parse func(string) (T, error)) error {
	word, err := popText(ctx)
	if err != nil {
		return err
	}
	err = eachItem(word, func(item string) error {
		value, err := parse(item)
		if err == nil {
			v.Values = append(v.Values, value)
		}
		return err
	})
	v.texts = append(v.texts, text{word, remedied(word, err)})
	return nil
}

// remedied adds to the error of a value the remedy for the word as a whole: quotes to leave
// out (Docker keeps the quotes in a file of variables), or a further flag to separate.
func remedied(word string, err error) error {
	switch {
	case err == nil:
		return nil
	case len(word) > 1 && (word[0] == '"' || word[0] == '\'') && word[0] == word[len(word)-1]:
		return fmt.Errorf("%w; leave the quotes out", err)
	case strings.Contains(word, " -"):
		return fmt.Errorf("%w; give each flag as a word of its own", err)
	}
	return err
}

// eachItem calls add with the items of a list. The first error of add ends the calls.
func eachItem(word string, add func(item string) error) error {
	for item := range strings.SplitSeq(word, ",") {
		if err := add(strings.TrimSpace(item)); err != nil {
			return err
		}
	}
	return nil
}

// decodeWhole is decode for values that may contain commas.
func (v *list[T]) decodeWhole(ctx *kong.DecodeContext, parse func(string) (T, error)) error {
	word, err := popText(ctx)
	if err != nil {
		return err
	}
	value, err := parse(word)
	v.Values, v.texts = append(v.Values, value), append(v.texts, text{word, err})
	return nil
}

// popText returns the next value. Unlike kong's PopValueInto, popText keeps bytes that are
// not UTF-8.
func popText(ctx *kong.DecodeContext) (string, error) {
	token, err := ctx.Scan.PopValue("value")
	return token.String(), err
}

func decodeBool[T any](v *single[T], ctx *kong.DecodeContext, parse func(string) (T, error)) error {
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		return v.decode(ctx, parse)
	}
	v.set("true", parse)
	return nil
}

// The readers of values. Errors are for users: the mistake, and the remedy.

func parseDuration(text string) (time.Duration, error) {
	d, err := shim.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if meant := plainDuration(text); meant != "" {
		return 0, fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	if _, negative := shim.ParseDuration(strings.TrimPrefix(text, "-")); negative == nil && strings.HasPrefix(text, "-") {
		return 0, fmt.Errorf("%w, not a negative time", err)
	}
	return 0, err
}

func parseLength(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && d == 0 {
		return 0, fmt.Errorf("invalid duration %q: give more than 0, in seconds (3) or units (500ms)", text)
	}
	return d, err
}

func parseGracePeriod(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && d < time.Second {
		return 0, fmt.Errorf("invalid grace period %q: give at least 1s, the time that the orchestrator gives (terminationGracePeriodSeconds, docker stop -t)", text)
	}
	return d, err
}

// parseSchedule is shim.ParseSchedule with a hint about a time in other units, and about
// other separators.
func parseSchedule(text string) (shim.Schedule, error) {
	schedule, err := shim.ParseSchedule(text)
	if err == nil {
		return schedule, nil
	}
	steps := strings.Split(text, "/")
	if len(steps) == 1 {
		steps = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	for i, step := range steps {
		steps[i] = cmp.Or(plainDuration(step), strings.TrimSpace(step))
	}
	meant := strings.Join(steps, "/")
	if _, other := shim.ParseSchedule(meant); other == nil {
		return nil, fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	return nil, err
}

// parseRewrite is shim.ParseRewrite with a hint about other separators: TERM=USR1,
// TERM->USR1.
func parseRewrite(text string) (shim.Rewrite, error) {
	r, err := shim.ParseRewrite(text)
	if err == nil {
		return r, nil
	}
	for _, separator := range []string{"->", "=>", "=", ":", "-"} {
		from, to, found := strings.Cut(text, separator)
		meant := strings.TrimSpace(from) + ":" + strings.TrimSpace(to)
		if _, other := shim.ParseRewrite(meant); found && other == nil {
			return r, fmt.Errorf("%w; did you mean %s?", err, meant)
		}
	}
	return r, err
}

// parseSignal is shim.ParseSignal with a hint about a name with a typo.
func parseSignal(text string) (shim.Signal, error) {
	s, err := shim.ParseSignal(text)
	if err == nil {
		return s, nil
	}
	var names []string
	for s := range shim.Signal(32) { // real-time signals have numbers in their names
		names = append(names, s.String())
	}
	near, typos := fewestEdits(strings.TrimPrefix(strings.ToUpper(text), "SIG"), names)
	if typos == 1 && len(near) > 2 {
		return 0, fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return 0, err
}

// parseHealth is shim.ParseHealth with a hint about a missing =, as in docker run -p.
func parseHealth(text string) (shim.HealthSpec, error) {
	spec, err := shim.ParseHealth(text)
	listen, target, found := strings.Cut(strings.TrimPrefix(text, ":"), ":")
	meant := ":" + listen + "=:" + target
	if _, other := shim.ParseHealth(meant); err != nil && found && other == nil {
		return spec, fmt.Errorf("%w; did you mean %s?", err, meant)
	}
	return spec, err
}

// inLowerCase adds the remedy to the error of a word whose lower case is right.
func inLowerCase[T any](text string, parse func(string) (T, error)) (T, error) {
	value, err := parse(text)
	if _, other := parse(strings.ToLower(text)); err != nil && other == nil {
		return value, fmt.Errorf("%w, in lower case", err)
	}
	return value, err
}

func parseCondition(text string) (shim.Condition, error) { return inLowerCase(text, conditionOf) }

func conditionOf(text string) (shim.Condition, error) {
	switch c := shim.Condition(text); c {
	case "elapsed":
		return shim.Elapsed, nil
	case shim.Settled, shim.Quiet, shim.Drained:
		return c, nil
	}
	return "", fmt.Errorf("invalid condition %q: give elapsed, settled, quiet or drained", text)
}

func parseHealthMode(text string) (shim.HealthMode, error) {
	return inLowerCase(text, shim.ParseHealthMode)
}

// ParsePreset reads the name or an alias of a preset, or auto.
func ParsePreset(text string) (string, error) {
	name, err := shim.ParsePreset(text)
	if err == nil {
		return name, nil
	}
	lower := strings.ToLower(text)
	near, typos := fewestEdits(lower, PresetNames())
	if shared := sharingWords(lower, PresetNames()); shared != "" && typos > 1 {
		near, typos = shared, 0
	}
	switch {
	case lower == "none" || lower == "off" || lower == "false":
		return "", fmt.Errorf("unknown preset %q: leave the preset out", text)
	case typos <= min(maxTypos-1, len(text)/2):
		return "", fmt.Errorf("unknown preset %q: did you mean %s? (lameduck presets lists them)", text, near)
	}
	return "", fmt.Errorf("unknown preset %q: give %s", text, presetList())
}

// presetList returns auto and the names of all presets, without their aliases, as words.
func presetList() string {
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(names, p.Name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// PresetNames returns auto, and the names and aliases of all presets.
func PresetNames() []string {
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return names
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err == nil && port > 0 {
		return uint16(port), nil
	}
	meant, _, _ := strings.Cut(text[strings.LastIndexByte(text, ':')+1:], "/") // :8080, 0.0.0.0:8080, 8080/tcp
	if n, other := strconv.ParseUint(meant, 10, 16); other == nil && n > 0 {
		return 0, fmt.Errorf("invalid port %q: give a number from 1 to 65535; did you mean %s?", text, meant)
	}
	return 0, fmt.Errorf("invalid port %q: give a number from 1 to 65535", text)
}

// parsePeer reads an address or a range of addresses.
func parsePeer(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	peers, err := netip.ParsePrefix(text)
	if err != nil || peers.Addr().Is4In6() {
		return peers, fmt.Errorf("invalid peer %q: give an address (10.0.0.1) or a range (10.0.0.0/8, fd00::/8)", text)
	}
	return peers.Masked(), nil
}

// parseExitMap reads FROM[:TO]; a TO that is left out is 0.
func parseExitMap(text string) (m shim.ExitMap, err error) {
	from, to, mapped := strings.Cut(text, ":")
	m.From, err = parseExitCode(from)
	if err == nil && mapped {
		m.To, err = parseExitCode(to)
	}
	return m, err
}

func parseExitCode(text string) (int, error) {
	code, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("invalid exit code %q: give FROM or FROM:TO, each from 0 to 255, as in 143 or 143:0", text)
	}
	return int(code), nil
}

func parseLevel(text string) (shim.Level, error) { return inLowerCase(text, levelOf) }

func levelOf(text string) (shim.Level, error) {
	for level, name := range []string{"error", "warn", "info", "debug"} {
		if text == name {
			return shim.Level(level), nil
		}
	}
	return 0, fmt.Errorf("invalid level %q: give error, warn, info or debug", text)
}

// parseFormat reports whether the format is JSON.
func parseFormat(text string) (json bool, err error) { return inLowerCase(text, isJSON) }

func isJSON(format string) (json bool, err error) {
	switch format {
	case "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, fmt.Errorf("invalid format %q: give text or json", format)
}

// parsePath returns an absolute path: lameduck changes its directory.
func parsePath(text string) (string, error) {
	if text == "" {
		return "", errors.New("empty path: give a path")
	}
	return filepath.Abs(text)
}

func parseTerminationLog(text string) (string, error) {
	if text == shim.NoTerminationLog {
		return text, nil
	}
	return parsePath(text)
}

// parseCommand splits a command as a shell does. A program with a slash in its name
// becomes an absolute path.
func parseCommand(text string) (words []string, err error) {
	words, err = SplitWords(text)
	if err == nil {
		err = checkNoShell(text)
	}
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New("no program in the command: give a program with its arguments")
	}
	if strings.Contains(words[0], "/") {
		words[0], err = filepath.Abs(words[0])
	}
	return words, err
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("invalid value %q: give true or false", text)
}

func parseChoice(text string) (shim.Choice, error) {
	yes, err := parseBool(text)
	if yes {
		return shim.Yes, err
	}
	return shim.No, err
}
