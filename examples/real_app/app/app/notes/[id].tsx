import { Stack, useLocalSearchParams } from "vendor-router";

export default function Note() {
  const { id } = useLocalSearchParams<"/notes/[id]">();
  return <Stack.Screen options={{ title: `Note ${id}` }} />;
}
