package ring3

import "os"

// readFile returns the content of a file in the program's root folder, or an empty string if it cannot be read.
func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(b)
}
