package ring3

import "os"

// readFile returns the content of a file of the program's root, or nothing.
func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}
