package pci_test

import (
	"encoding/binary"

	"loam/boot/acpi"
)

// tablesWith returns firmware tables that describe one range of configuration space.
func tablesWith(e acpi.ECAM) acpi.Tables {
	le := binary.LittleEndian
	memory := make([]byte, 4096)
	table := func(at int, signature string, body []byte) {
		b := memory[at : at+36+len(body)]
		copy(b, signature)
		le.PutUint32(b[4:], uint32(len(b)))
		copy(b[36:], body)
		b[9] = -sum(b)
	}
	mcfg := le.AppendUint64(make([]byte, 8), e.Address)
	table(1024, "MCFG", append(mcfg, 0, 0, e.First, e.Last, 0, 0, 0, 0))
	table(512, "RSDT", le.AppendUint32(nil, 1024))
	copy(memory[16:], "RSD PTR ")
	le.PutUint32(memory[32:], 512)
	memory[24] = -sum(memory[16:36])
	t, _ := acpi.Open(func(at, n uint64) []byte {
		if at > uint64(len(memory)) || n > uint64(len(memory))-at {
			return nil
		}
		return memory[at : at+n]
	}, 16)
	return t
}

func sum(b []byte) (s uint8) {
	for _, v := range b {
		s += v
	}
	return s
}
