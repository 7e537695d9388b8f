package catalogview

import "errors"

// GlueAnswer is what the service answered in an error of [Glue]: the HTTP status (0: no
// answer, or no request could be made) and Glue's code, such as AccessDeniedException
// ("": the answer has none).
func GlueAnswer(err error) (status int, code string) {
	var e *glueError
	if errors.As(err, &e) {
		return e.status, e.code
	}
	return 0, ""
}
