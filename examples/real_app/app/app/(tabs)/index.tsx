import { Link } from "vendor-router";

export default function Home() {
  return <Link href={{ pathname: "/notes/[id]", params: { id: "7" } }}>Note 7</Link>;
}
