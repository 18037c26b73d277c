module loam

go 1.26
