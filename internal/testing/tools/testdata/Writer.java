import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Writes a file as Java programs do. */
public final class Writer {
    public static void main(String[] args) throws Exception {
        Path to = Path.of(args[args.length - 1]);
        switch (args[0]) {
            case "write" -> Files.write(to, "written\n".getBytes());
            case "copy" -> Files.copy(Path.of(args[1]), to, StandardCopyOption.REPLACE_EXISTING);
            case "move" -> Files.move(Path.of(args[1]), to, StandardCopyOption.REPLACE_EXISTING);
            case "replace" -> {
                Path part = Files.createTempFile(to.toAbsolutePath().getParent(), "part", ".tmp");
                Files.writeString(part, "replaced\n");
                Files.move(part, to, StandardCopyOption.ATOMIC_MOVE);
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
    }
}
