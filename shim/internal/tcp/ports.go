package tcp

import "slices"

// PortSet sorts ports in place, by Shell's method, and returns each port once. slices.Sort
// would be compiled for ports alone, and sort.Sort allocates memory.
func PortSet(ports []uint16) []uint16 {
	for gap := len(ports) / 2; gap > 0; gap /= 2 {
		for i := gap; i < len(ports); i++ {
			for k := i; k >= gap && ports[k] < ports[k-gap]; k -= gap {
				ports[k], ports[k-gap] = ports[k-gap], ports[k]
			}
		}
	}
	return slices.Compact(ports)
}
