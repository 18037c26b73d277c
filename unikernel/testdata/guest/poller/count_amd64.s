// The declaration of count has no body; with a file of assembly code in the package, the compiler accepts it.
