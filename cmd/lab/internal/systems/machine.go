package systems

import (
	"fmt"
	"strings"
)

// machine is QEMU's emulation of one kind of processor.
type machine struct {
	arch     string // the name of GOARCH and of Debian
	emulator string
	args     []string
	console  string
	nic      string
	modules  []string // the drivers of nic, where the kernel has them as modules
}

// romfile= spares the package of network boot firmware.
var machines = []machine{
	{"amd64", "qemu-system-x86_64", []string{"-machine", "q35", "-cpu", "max"},
		"ttyS0", "virtio-net-pci,romfile=", []string{"virtio_pci", "virtio_net"}},
	{"arm64", "qemu-system-aarch64", []string{"-machine", "virt", "-cpu", "cortex-a57"},
		"ttyAMA0", "virtio-net-pci,romfile=", []string{"virtio_pci", "virtio_net"}},
	{"s390x", "qemu-system-s390x", []string{"-machine", "s390-ccw-virtio", "-cpu", "max"},
		"ttysclp0", "virtio-net-ccw", []string{"virtio_net"}},
}

// The guest's address in QEMU's user network, and the port of the guest's server.
const (
	guestAddress = "10.0.2.15"
	guestPort    = 8080
)

// command is the QEMU command line that boots a kernel and forwards a port of the
// host's loopback interface to the guest's server. A panic ends QEMU: the kernel
// reboots, and -no-reboot makes a reboot an exit.
func (m *machine) command(kernel, initramfs, parameters string, port int) []string {
	forward := fmt.Sprintf("user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:%d-%s:%d", port, guestAddress, guestPort)
	return append([]string{m.emulator}, append(m.args,
		"-m", "1024", "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-netdev", forward, "-device", m.nic+",netdev=net0",
		"-kernel", kernel, "-initrd", initramfs, "-append", parameters)...)
}

// parameters is the kernel's command line. The kernel passes what follows "--" to
// PID 1 as arguments, and NAME=VALUE before it as environment variables.
func (m *machine) parameters(v *variant) string {
	words := []string{"console=" + m.console, "loglevel=1", "panic=-1", "rdinit=/guest"}
	words = append(words, v.kernel...)
	words = append(words, "--")
	words = append(words, v.lameduck...)
	words = append(words, "/guest", v.command)
	return strings.Join(words, " ")
}
