package tcp

import "slices"

// PortSet sorts ports in place, and returns each port once.
func PortSet(ports []uint16) []uint16 {
	slices.Sort(ports)
	return slices.Compact(ports)
}
