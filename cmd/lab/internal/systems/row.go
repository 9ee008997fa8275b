package systems

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// row is one boot and the results.
type row struct {
	kernel  *kernel
	variant *variant
	outcome outcome
	status  status // before TERM
	sent    int
	lost    int
	slow    string // the outcome of the slow request
	took    time.Duration
	skipped string
	wrong   []string
}

const (
	patience = 4 * time.Minute // for a boot, and for an exit, of an emulated processor
	running  = 2 * time.Second // under load before TERM
	lag      = 2 * time.Second // under load after TERM
	think    = 8 * time.Second // of the slow request, longer than the quiet interval
)

// play boots the kernel, and leaves the results in r.
func (r *row) play(ctx context.Context, initramfs, keep string) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	vm, err := start(ctx, r.kernel, initramfs, r.variant)
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
		return
	}
	if r.variant.command == "serve" {
		r.note(r.stopUnderLoad(ctx, vm))
	}
	if err := vm.wait(ctx, cancel); err != nil {
		r.note(err)
	}
	text := vm.console.String()
	r.outcome, r.took = parseConsole(text), time.Since(began)
	r.judge()
	if len(r.wrong) > 0 {
		r.wrong = append(r.wrong, "console:\n"+tail(text, 40))
	}
	if keep != "" {
		name := strings.NewReplacer("/", "-", " ", "-").Replace(r.kernel.version + "-" + r.variant.name + ".log")
		r.note(os.WriteFile(filepath.Join(keep, name), []byte(text), 0o644))
	}
}

func (r *row) note(err error) {
	if err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
}

// wait waits until the guest's panic has ended QEMU, and else ends QEMU.
func (q *virtual) wait(ctx context.Context, kill context.CancelFunc) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-q.gone:
		return nil
	case <-limit.C:
	case <-ctx.Done():
	}
	kill()
	<-q.gone
	return errors.New("the guest did not end")
}

// stopUnderLoad has HUP and then TERM sent to the guest's PID 1, under load.
func (r *row) stopUnderLoad(ctx context.Context, vm *virtual) error {
	alive, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() { // a guest that has exited does not answer
		<-vm.gone
		cancel()
	}()
	c := newClient(vm.address)
	if _, err := c.await(alive, func(status) bool { return true }); err != nil {
		return fmt.Errorf("the guest's server does not answer: %w", err)
	}
	load := c.startLoad(ctx) // goes on without the guest: later requests are lost
	err := r.hangUp(alive, c)
	slow := r.startSlow(ctx, c)
	if err == nil {
		err = r.terminate(ctx, c)
	}
	load.finish()
	r.sent, r.lost = load.sent, load.lost
	r.slow = <-slow
	return err
}

// hangUp has HUP sent. The server counts the signal.
func (r *row) hangUp(ctx context.Context, c *client) (err error) {
	time.Sleep(running)
	if _, err := c.get(ctx, "/signal?name=SIGHUP"); err != nil {
		return fmt.Errorf("cannot have HUP sent: %w", err)
	}
	r.status, err = c.await(ctx, func(s status) bool { return s.HUPs > 0 && s.Orphans == 0 })
	if err != nil {
		return fmt.Errorf("HUP was not passed on, or orphans are left: %w", err)
	}
	return nil
}

// terminate has TERM sent, and lets the load go on as behind a balancer that learns
// late of the stop. Without a hold even the answer to this request may be lost.
func (r *row) terminate(ctx context.Context, c *client) error {
	if _, err := c.get(ctx, "/signal?name=SIGTERM"); err != nil && !r.variant.loses {
		return fmt.Errorf("cannot have TERM sent: %w", err)
	}
	time.Sleep(lag)
	return nil
}

// startSlow sends the slow request, where the observer sees it in flight.
func (r *row) startSlow(ctx context.Context, c *client) <-chan string {
	ended := make(chan string, 1)
	if !r.variant.inFlight {
		ended <- ""
		return ended
	}
	go func() {
		if _, err := c.get(ctx, "/?think="+think.String()); err != nil {
			ended <- err.Error()
			return
		}
		ended <- answered
	}()
	return ended
}

const answered = "answered"
