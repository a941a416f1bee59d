import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Calendar;
import java.util.Locale;
import java.util.TimeZone;

/** Reads "kind zone now month day weekday hour minute" and prints when the trigger fires next, and the offsets now and then, in milliseconds. */
public final class NextDate {
    public static void main(String[] arguments) throws Exception {
        Locale.setDefault(Locale.US);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(new java.io.BufferedOutputStream(System.out));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] given = line.split(" ");
            int[] numbers = new int[8];
            for (int index = 3; index < 8; index++) {
                numbers[index] = Integer.parseInt(given[index]);
            }
            Calendar now = Calendar.getInstance(TimeZone.getTimeZone(given[1]));
            now.setTimeInMillis(Long.parseLong(given[2]));
            Calendar next = (Calendar) now.clone();
            int unit = Calendar.DATE;
            int amount = 1;
            switch (given[0]) {
                case "weekly":
                    next.set(Calendar.DAY_OF_WEEK, numbers[5]);
                    amount = 7;
                    break;
                case "monthly":
                    next.set(Calendar.DATE, numbers[4]);
                    unit = Calendar.MONTH;
                    break;
                case "yearly":
                    next.set(Calendar.DATE, numbers[4]);
                    next.set(Calendar.MONTH, numbers[3]);
                    unit = Calendar.YEAR;
                    break;
                default:
                    break;
            }
            next.set(Calendar.HOUR_OF_DAY, numbers[6]);
            next.set(Calendar.MINUTE, numbers[7]);
            next.set(Calendar.SECOND, 0);
            next.set(Calendar.MILLISECOND, 0);
            if (next.before(now)) {
                next.add(unit, amount);
            }
            long found = next.getTimeInMillis();
            TimeZone zone = now.getTimeZone();
            out.println(found + " " + zone.getOffset(now.getTimeInMillis()) + " " + zone.getOffset(found));
        }
        out.flush();
    }
}
