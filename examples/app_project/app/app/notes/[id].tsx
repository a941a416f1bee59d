export default function Note() {
  return null;
}
