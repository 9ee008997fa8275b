package systems

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// options is the command line.
type options struct {
	kernels string
	only    string
	source  string
	keep    string
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab systems", flag.ContinueOnError)
	f.StringVar(&o.kernels, "kernels", "/", "directories with boot/vmlinuz-* and lib/modules, or with such directories, separated by commas")
	f.StringVar(&o.only, "only", "", "only the rows whose kernel and variant contain this text")
	f.StringVar(&o.source, "source", "../..", "the source tree of lameduck")
	f.StringVar(&o.keep, "keep", "", "write the consoles into this directory")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: lab systems [flags]")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: see lab systems --help", f.Arg(0))
	}
	return o, nil
}

// Run boots every kernel in every variant, and prints the table to out. The error says
// how many rows are wrong.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	kernels, err := findKernels(strings.Split(o.kernels, ","))
	if err != nil {
		return err
	}
	rows := o.rows(kernels)
	if len(rows) == 0 {
		return fmt.Errorf("invalid -only %q: no row contains it", o.only)
	}
	dir, err := os.MkdirTemp("", "lab-systems-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := o.playAll(ctx, rows, dir, out); err != nil {
		return err
	}
	printTable(out, rows)
	return verdict(rows)
}

func (o *options) rows(kernels []*kernel) (rows []*row) {
	for _, k := range kernels {
		for i := range variants {
			r := &row{kernel: k, variant: &variants[i]}
			if strings.Contains(k.version+" "+r.variant.name, o.only) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// playAll plays one row after the other: an emulated processor is slow enough alone.
func (o *options) playAll(ctx context.Context, rows []*row, dir string, out io.Writer) error {
	builds := map[string]*build{}
	for _, r := range rows {
		if _, isModule := r.kernel.modules["tcp_diag"]; !isModule && !r.variant.diag {
			r.skipped = "tcp_diag is part of this kernel"
			continue
		}
		b, err := o.build(ctx, builds, r.kernel.machine.arch, dir)
		if err != nil {
			return err
		}
		if err := r.boot(ctx, b, dir, o.keep); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s, %s: %s, %.0f s\n", r.kernel.version, r.variant.name, r.verdict(), r.took.Seconds())
	}
	return nil
}

// build returns the programs for a processor, built once.
func (o *options) build(ctx context.Context, builds map[string]*build, arch, dir string) (*build, error) {
	if b := builds[arch]; b != nil {
		return b, nil
	}
	root, err := filepath.Abs(o.source)
	if err != nil {
		return nil, err
	}
	into := filepath.Join(dir, arch)
	if err := os.Mkdir(into, 0o755); err != nil {
		return nil, err
	}
	b, err := newBuild(ctx, root, into, arch)
	builds[arch] = b
	return b, err
}

// boot makes the initramfs and plays the row.
func (r *row) boot(ctx context.Context, b *build, dir, keep string) error {
	data, err := b.initramfs(r.kernel, r.variant)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "initramfs")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	r.play(ctx, path, keep)
	return nil
}

func verdict(rows []*row) error {
	wrong := 0
	for _, r := range rows {
		if len(r.wrong) > 0 {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d rows are wrong", wrong, len(rows))
	}
	return nil
}
