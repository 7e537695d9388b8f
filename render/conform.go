package render

// conform chooses the columns that are shown, and holds the file's to the table's.
func conform(s Spec, file []field) ([]output, error) {
	var outputs []output
	for i, f := range file {
		outputs = append(outputs, output{name: f.name, from: i})
	}
	for i := range s.Keys {
		outputs = append(outputs, output{name: s.Keys[i].Name, from: -1, key: &s.Keys[i]})
	}
	return outputs, nil
}
