// Follows the recording of another process, and has it dumped as soon as a step took longer than a threshold.
//
//   java Watch.java REPOSITORY PROCESS THRESHOLD_MILLIS FILE

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import jdk.jfr.consumer.EventStream;

public final class Watch {
    public static void main(String[] arguments) throws Exception {
        Duration threshold = Duration.ofMillis(Long.parseLong(arguments[2]));
        AtomicBoolean hasFired = new AtomicBoolean();
        try (EventStream stream = EventStream.openRepository(Path.of(arguments[0]))) {
            stream.onEvent("compare.Step", event -> {
                if (event.getDuration().compareTo(threshold) <= 0 || hasFired.getAndSet(true)) return;
                System.out.println("step of request " + event.getLong("id") + " took " + event.getDuration());
                try {
                    new ProcessBuilder("jcmd", arguments[1], "JFR.dump", "name=compare", "begin=-10s",
                            "filename=" + arguments[3]).inheritIO().start().waitFor();
                } catch (Exception failed) {
                    System.err.println(failed);
                }
                System.exit(0);
            });
            stream.start();
        }
    }
}
