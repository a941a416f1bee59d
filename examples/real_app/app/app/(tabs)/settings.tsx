import { Link } from "vendor-router";

export default function Settings() {
  return <Link href="/">Home</Link>;
}
