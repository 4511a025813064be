/** Says that a release doesn't have what a case is about. */
final class Absent extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Absent(String what) {
        super(what);
    }
}
