package objectstore

// S3Answer is what the store answered in an error of [S3]: the HTTP status (0: no
// answer) and S3's code, such as AccessDenied ("": the answer to a HEAD has none).
func S3Answer(err error) (status int, code string) { return answerOf(err) }
