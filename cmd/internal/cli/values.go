package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// types returns the types of values, by the tag type.
func types() map[string]kong.Mapper {
	return map[string]kong.Mapper{
		"duration": one(shim.ParseDuration),
		"length":   one(atLeast(time.Nanosecond, "invalid duration %q: give more than 0, in seconds (3) or units (500ms)")),
		"grace": one(atLeast(time.Second, "invalid grace period %q: give at least 1 s, the time that the orchestrator "+
			"gives (terminationGracePeriodSeconds, docker stop -t)")),
		"condition": oneOf("condition", "elapsed, settled, quiet or drained",
			shim.Elapsed, shim.Settled, shim.Quiet, shim.Drained),
		"path":     one(parsePath),
		"log":      one(parseTerminationLog),
		"onstop":   one(parseOnStop),
		"url":      one(parseURL),
		"ports":    list(parsePort),
		"goaway":   list(parseGoaway),
		"peers":    list(parsePeer),
		"probes":   yesOrNo(shim.IgnoreProbes, shim.CountProbes),
		"rewrites": list(shim.ParseRewrite),
		"signals":  list(parseSignal),
		"signal":   one(parseSignal),
		"preset":   one(ParsePreset),
		"bool":     yesOrNo(true, false),
		"choice":   yesOrNo(shim.Yes, shim.No),
		"schedule": one(shim.ParseSchedule),
		"exits":    list(parseExitMap),
		"level": oneOf("level", "error, warn, info or debug",
			shim.Error, shim.Warn, shim.Info, shim.Debug),
		"format": oneOf("format", "text or json", "text", "json"),
		"health": one(shim.ParseHealth),
		"mode":   oneOf("mode", "pass, fail or close", shim.HealthPass, shim.HealthFail, shim.HealthClose),

		"expected": one(parseExpected), // of tini
		"numbers":  one(parseNumbers),  // of dumb-init
	}
}

// parser reads a value.
type parser[T any] func(text string) (T, error)

// one returns the type of a value, which is the field, or one more of several. A field of one value
// gets what the parser makes of an invalid text. Unlike with kong's own types, bytes that are not UTF-8 stay.
func one[T any](parse parser[T]) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, field reflect.Value) error {
		value, err := parse(ctx.Scan.Pop().String())
		switch field := field.Addr().Interface().(type) {
		case *T:
			*field = value
		case *[]T:
			if err == nil {
				*field = append(*field, value)
			}
		}
		return err
	}
}

// list returns the type of values that may come together, separated by commas.
func list[T any](parse parser[T]) kong.MapperFunc {
	each := one(parse)
	return func(ctx *kong.DecodeContext, field reflect.Value) (err error) {
		for text := range strings.SplitSeq(ctx.Scan.Pop().String(), ",") {
			ctx.Scan.Push(strings.TrimSpace(text))
			err = cmp.Or(err, each(ctx, field))
		}
		return err
	}
}

// onOrOff is the type of a flag that may be given without a value, which means yes.
type onOrOff struct{ kong.MapperFunc }

// IsBool implements [kong.BoolMapper].
func (onOrOff) IsBool() bool { return true }

func yesOrNo[T any](yes, no T) onOrOff {
	return onOrOff{one(func(text string) (T, error) {
		switch strings.ToLower(text) {
		case "1", "true", "yes", "on":
			return yes, nil
		case "0", "false", "no", "off":
			return no, nil
		}
		return no, fmt.Errorf("invalid value %q: give true or false", text)
	})}
}

// oneOf returns the type of a word of a few, listed as in a sentence. The first value
// stands for an invalid one.
func oneOf[T any](what, words string, values ...T) kong.MapperFunc {
	return one(func(text string) (T, error) {
		i := slices.Index(strings.Split(strings.Replace(words, " or ", ", ", 1), ", "), text)
		if i < 0 {
			return values[0], fmt.Errorf("invalid %s %q: give %s", what, text, words)
		}
		return values[i], nil
	})
}

// The errors of the parsers are for users: the mistake, and the remedy.

// atLeast returns the parser of a duration with a minimum. wrong is the error for a shorter one.
func atLeast(least time.Duration, wrong string) parser[time.Duration] {
	return func(text string) (time.Duration, error) {
		d, err := shim.ParseDuration(text)
		if err == nil && d < least {
			return 0, fmt.Errorf(wrong, text)
		}
		return d, err
	}
}

// parseSignal is shim.ParseSignal with a hint about a name with a typo.
func parseSignal(text string) (shim.Signal, error) {
	s, err := shim.ParseSignal(text)
	if near := nearSignal(text); err != nil && near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return s, err
}

// nearSignal returns the standard signal that text probably stands for, or "": real-time signals have
// numbers in their names.
func nearSignal(text string) string {
	var names []string
	for s := shim.Signal(1); s < 32; s++ {
		names = append(names, s.String())
	}
	return nearest(strings.TrimPrefix(strings.ToUpper(text), "SIG"), names)
}

// otherServers have no preset, and names like those of servers that have one. The signal of
// another server may cut all requests.
var otherServers = []string{"thttpd", "none"}

// ParsePreset reads the name or an alias of a preset, or auto.
func ParsePreset(text string) (string, error) {
	if p := shim.PresetNamed(text); p != nil {
		return p.Name, nil
	}
	if strings.EqualFold(text, shim.AutoPreset) {
		return shim.AutoPreset, nil
	}
	names := []string{shim.AutoPreset}
	for _, p := range shim.Presets() {
		names = append(append(names, p.Aliases...), p.Name)
	}
	remedy := "give that of the server that gets the signal, or auto"
	if near := nearest(text, names); near != "" && !slices.Contains(otherServers, text) {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	return "", fmt.Errorf("unknown preset %q: %s (lameduck presets lists them)", text, remedy)
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("invalid port %q: give a number from 1 to 65535", text)
	}
	return uint16(port), nil
}

// parseGoaway reads a port, or auto.
func parseGoaway(text string) (uint16, error) {
	if text == "auto" {
		return shim.AutoGoaway, nil
	}
	port, err := parsePort(text)
	if err != nil {
		err = fmt.Errorf("%w, or auto", err)
	}
	return port, err
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
	if peers.Bits() == 0 {
		return peers, fmt.Errorf("invalid peer %q: nobody would count: give a smaller range", text)
	}
	return peers.Masked(), nil
}

// parseExitMap reads [stop:]FROM[:TO]; a TO that is left out is 0.
func parseExitMap(text string) (m shim.ExitMap, err error) {
	codes, stopped := strings.CutPrefix(text, "stop:")
	from, to, mapped := strings.Cut(codes, ":")
	if !mapped {
		to = "0"
	}
	fromCode, err := strconv.ParseUint(from, 10, 8)
	toCode, toErr := strconv.ParseUint(to, 10, 8)
	if err != nil || toErr != nil {
		return m, fmt.Errorf("invalid exit code %q: give FROM or FROM:TO, each from 0 to 255, "+
			"as in 143, 143:0 or stop:1", text)
	}
	return shim.ExitMap{From: int(fromCode), To: int(toCode), Stopped: stopped}, nil
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

// parseURL reads a URL that is asked for by GET.
func parseURL(text string) (*shim.Request, error) { return shim.ParseRequest("GET " + text) }

// parseOnStop reads a command, or a signal's name in capitals or a request, alone.
func parseOnStop(text string) (on shim.OnStop, err error) {
	if shim.IsRequest(text) {
		on.Request, err = shim.ParseRequest(text)
		return on, err
	}
	on.Command, err = parseCommand(text)
	if len(on.Command) == 1 && looksLikeSignal(on.Command[0]) {
		on.Signal, err = parseSignal(on.Command[0])
		on.Command = nil
	}
	return on, err
}

// looksLikeSignal reports whether a word is the name of a signal, perhaps with a typo: in
// capitals, or with SIG. Programs are called kill, int and stop.
func looksLikeSignal(word string) bool {
	inCapitals := word == strings.ToUpper(word)
	hasPrefix := strings.HasPrefix(strings.ToUpper(word), "SIG")
	if _, err := shim.ParseSignal(word); err == nil {
		return hasPrefix || inCapitals
	}
	return inCapitals && (hasPrefix || nearSignal(word) != "")
}

// parseCommand splits a command as a shell does. A program with a slash in its name
// becomes an absolute path.
func parseCommand(text string) (words []string, err error) {
	words, err = SplitWords(text)
	if err == nil && len(words) == 0 {
		err = errors.New("no program in the command: give a program with its arguments")
	}
	if err == nil && strings.Contains(words[0], "/") {
		words[0], err = filepath.Abs(words[0])
	}
	return words, err
}

// parseExpected reads an exit code as tini does, which is reported as 0.
func parseExpected(text string) (m shim.ExitMap, err error) {
	m.From, err = strconv.Atoi(strings.TrimSpace("0" + strings.TrimLeft(text, " +")))
	if err != nil || m.From > 255 {
		return m, errors.New("give an exit code from 0 to 255")
	}
	return m, nil
}

// parseNumbers reads FROM:TO, with FROM from 1 to 31 and TO from 0 to 31, as dumb-init's
// scanf(3) does: spaces and a sign may come before a number, and anything after TO. Names
// of signals are fine too.
func parseNumbers(text string) (r shim.Rewrite, err error) {
	if _, err := fmt.Sscanf(text, "%d:%d", (*int)(&r.From), (*int)(&r.To)); err != nil {
		return shim.ParseRewrite(text)
	}
	if r.From < 1 || r.From > 31 || r.To < 0 || r.To > 31 {
		err = errors.New("give FROM:TO with FROM from 1 to 31 and TO from 0 to 31")
	}
	return r, err
}
