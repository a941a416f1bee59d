export default function Notes() {
  return null;
}
