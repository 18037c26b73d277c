package runtime

// getHugePageSize returns the size of a huge page in bytes. The runtime reads it from a host file, which a
// sealed program cannot open. With transparent huge pages, Linux uses this size on all x86-64 machines;
// without them it ignores advice about huge pages.
func getHugePageSize() uintptr { return 2 << 20 }
