import { Stack } from "vendor-router";

export default function NotFound() {
  return <Stack.Screen options={{ title: "Not found" }} />;
}
