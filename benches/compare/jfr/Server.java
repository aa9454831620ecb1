// The server of docs/COMPARE.md with Java's flight recorder. A line that is there for the recording ends with the mark //T.

import jdk.jfr.Event; //T
import jdk.jfr.Name; //T
import jdk.jfr.StackTrace; //T

public final class Server {
    static final int PER_SECOND = 10_000, STUCK = 20_000, SLOW = 40_000;

    @Name("compare.Request") //T
    @StackTrace(false) //T
    static final class Request extends Event { //T
        long id; //T
    } //T

    @Name("compare.Step") //T
    @StackTrace(false) //T
    static final class Step extends Event { //T
        long id; //T
    } //T

    static void work(long id) throws InterruptedException {
        if (id == SLOW) Thread.sleep(300);
        if (id == STUCK) Thread.currentThread().join();
    }

    static void handle(long id) throws InterruptedException {
        Request request = new Request(); //T
        request.id = id; //T
        request.begin(); //T
        Step step = new Step(); //T
        step.id = id; //T
        step.begin(); //T
        work(id);
        step.commit(); //T
        request.commit(); //T
    }

    static void handleAlone(long id) {
        try {
            handle(id);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        long start = System.nanoTime();
        for (long id = 0;; id++) {
            while (System.nanoTime() - start < id * (1_000_000_000 / PER_SECOND)) Thread.sleep(1);
            if (id == STUCK || id == SLOW) {
                long alone = id;
                new Thread(() -> handleAlone(alone), id == SLOW ? "slow" : "stuck").start();
                System.out.println("request " + id + (id == SLOW ? " is slow" : " never ends"));
            } else {
                handle(id);
            }
        }
    }
}
